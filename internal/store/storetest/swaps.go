package storetest

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
)

// swapped changes a task that must be as it was.
func swapped(t *testing.T, st store.Store, task store.Task, limitMB int64) store.Task {
	t.Helper()
	kept, err := st.SwapTask(t.Context(), task, limitMB)
	require.NoError(t, err)
	return kept
}

// refused wants an error of a kind with a cause, with a hint.
func refused(t *testing.T, err error, kind fault.Kind, cause error) {
	t.Helper()
	require.ErrorIs(t, err, cause)
	assert.Equal(t, kind, fault.KindOf(err))
	assert.NotEmpty(t, fault.HintOf(err))
}

func swaps(t *testing.T, s Subject) {
	t.Helper()
	st := s.Store
	first := added(t, st, task(1))
	s.Pass(t, time.Millisecond)
	want := store.Task{
		ID: "t-1", Key: "not kept", Spec: "not kept", State: "running", Version: 1, Fence: 8, Owner: "you", LeaseUntil: day(5),
		Budget: "other", ReserveMB: 512, CreatedAt: day(9), UpdatedAt: day(9), ReadAt: day(9), Body: []byte(`{"b":2}`),
	}
	second := swapped(t, st, want, 0)
	want.Key, want.Spec, want.CreatedAt, want.LeaseUntil, want.Version = first.Key, first.Spec, first.CreatedAt, stored(day(5)), 2
	assert.Equal(t, timeless(want), timeless(second))
	assert.True(t, second.UpdatedAt.After(first.UpdatedAt))
	assert.Equal(t, second.UpdatedAt, second.ReadAt)
	found, err := st.Task(t.Context(), "t-1")
	require.NoError(t, err)
	assert.Equal(t, timeless(second), timeless(found))
	assert.Equal(t, second.UpdatedAt, found.UpdatedAt)

	for _, version := range []int64{1, 3, 0, -1} {
		stale := second
		stale.Version, stale.State = version, "stale"
		_, err = st.SwapTask(t.Context(), stale, 0)
		refused(t, err, fault.KindLocked, store.ErrSwapped)
	}
	lower := second
	lower.Fence--
	_, err = st.SwapTask(t.Context(), lower, 0)
	assert.Equal(t, fault.KindUsage, fault.KindOf(err), "a fence never falls")
	for _, bad := range []store.Task{{}, {ID: "t-1", Version: 2, Fence: 8, ReserveMB: -1}, {ID: "t-1", Version: 2, Fence: 8, ReserveMB: math.MaxInt64}} {
		_, err = st.SwapTask(t.Context(), bad, 0)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	}
	_, err = st.SwapTask(t.Context(), store.Task{ID: "nowhere", Version: 1}, 0)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
	over(t, st, found)
}

// over ends a task, and shows that nothing changes it again.
func over(t *testing.T, st store.Store, task store.Task) {
	t.Helper()
	task.State, task.Over, task.Owner, task.LeaseUntil, task.Body = "stopped", true, "", time.Time{}, nil
	end := swapped(t, st, task, 0)
	assert.EqualValues(t, 3, end.Version)
	for _, version := range []int64{2, 3, 4} {
		late := end
		late.Version, late.Over, late.State, late.Fence = version, false, "running", 99
		for _, limit := range []int64{0, 1 << 20} {
			_, err := st.SwapTask(t.Context(), late, limit)
			refused(t, err, fault.KindRefused, store.ErrOver)
			assert.Contains(t, err.Error(), "stopped")
		}
	}
	found, err := st.Task(t.Context(), task.ID)
	require.NoError(t, err)
	found.ReadAt = end.ReadAt
	assert.Equal(t, end, found)
}

// swapRaces lets many goroutines change one version, several times over: one does,
// and what is kept is all of what it wanted.
func swapRaces(t *testing.T, s Subject) {
	t.Helper()
	const rounds, runners = 8, 16
	st := s.Store
	kept := added(t, st, task(1))
	for range rounds {
		results := make([]error, runners)
		var wg sync.WaitGroup
		for runner := range runners {
			wg.Go(func() {
				mine := kept
				mine.State, mine.Fence = fmt.Sprintf("by %d", runner), kept.Fence+int64(runner)
				mine.Owner, mine.Body = mine.State, fmt.Appendf(nil, `{"by":%d}`, runner)
				_, results[runner] = st.SwapTask(t.Context(), mine, 0)
			})
		}
		wg.Wait()
		now, err := st.Task(t.Context(), kept.ID)
		require.NoError(t, err)
		assert.Equal(t, kept.Version+1, now.Version)
		for runner, err := range results {
			if now.State != fmt.Sprintf("by %d", runner) {
				refused(t, err, fault.KindLocked, store.ErrSwapped)
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, []string{now.State, fmt.Sprintf(`{"by":%d}`, runner)}, []string{now.Owner, string(now.Body)})
			assert.Equal(t, kept.Fence+int64(runner), now.Fence)
		}
		kept = now
	}
}

// addRaces lets many goroutines add a task of one key: one does, the others get it.
func addRaces(t *testing.T, s Subject) {
	t.Helper()
	const runners = 16
	st := s.Store
	var mu sync.Mutex
	ids, news := map[string]bool{}, 0
	var wg sync.WaitGroup
	for runner := range runners {
		wg.Go(func() {
			kept, isNew, err := st.AddTask(t.Context(), store.Task{ID: fmt.Sprintf("t-%d", runner), Key: "one"})
			mu.Lock()
			defer mu.Unlock()
			assert.NoError(t, err)
			ids[kept.ID] = true
			if isNew {
				news++
			}
		})
	}
	wg.Wait()
	assert.Equal(t, 1, news)
	assert.Len(t, ids, 1)
}
