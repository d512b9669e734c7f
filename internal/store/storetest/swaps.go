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

// mustSwap changes a task that must be unchanged since it was read.
func mustSwap(t *testing.T, st store.Store, task store.Task, limitMB int64) store.Task {
	t.Helper()
	kept, err := st.SwapTask(t.Context(), task, limitMB)
	require.NoError(t, err)
	return kept
}

// requireRefused checks an error's kind, cause and hint.
func requireRefused(t *testing.T, err error, kind fault.Kind, cause error) {
	t.Helper()
	require.ErrorIs(t, err, cause)
	assert.Equal(t, kind, fault.KindOf(err))
	assert.NotEmpty(t, fault.HintOf(err))
}

func testSwaps(t *testing.T, s Subject) {
	t.Helper()
	st := s.Store
	first := mustAdd(t, st, exampleTask(1))
	s.Pass(t, time.Millisecond)
	want := store.Task{
		ID: "t-1", Key: "not kept", Spec: "not kept", State: "running", Version: 1, Fence: 8, Owner: "you", LeaseUntil: exampleTime(5),
		Budget: "other", ReserveMB: 512, CreatedAt: exampleTime(9), UpdatedAt: exampleTime(9), ReadAt: exampleTime(9), Body: []byte(`{"b":2}`),
	}
	second := mustSwap(t, st, want, 0)
	want.Key, want.Spec, want.CreatedAt, want.LeaseUntil, want.Version = first.Key, first.Spec, first.CreatedAt, storedTime(exampleTime(5)), 2
	assert.Equal(t, withoutTimes(want), withoutTimes(second))
	assert.True(t, second.UpdatedAt.After(first.UpdatedAt))
	assert.Equal(t, second.UpdatedAt, second.ReadAt)
	found, err := st.Task(t.Context(), "t-1")
	require.NoError(t, err)
	assert.Equal(t, withoutTimes(second), withoutTimes(found))
	assert.Equal(t, second.UpdatedAt, found.UpdatedAt)

	for _, version := range []int64{1, 3, 0, -1} {
		stale := second
		stale.Version, stale.State = version, "stale"
		_, err = st.SwapTask(t.Context(), stale, 0)
		requireRefused(t, err, fault.KindLocked, store.ErrSwapped)
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
	testEndedTask(t, st, found)
}

// testEndedTask ends a task, and shows that nothing changes it again.
func testEndedTask(t *testing.T, st store.Store, task store.Task) {
	t.Helper()
	task.State, task.Ended, task.Owner, task.LeaseUntil, task.Body = "stopped", true, "", time.Time{}, nil
	end := mustSwap(t, st, task, 0)
	assert.EqualValues(t, 3, end.Version)
	for _, version := range []int64{2, 3, 4} {
		late := end
		late.Version, late.Ended, late.State, late.Fence = version, false, "running", 99
		for _, limit := range []int64{0, 1 << 20} {
			_, err := st.SwapTask(t.Context(), late, limit)
			requireRefused(t, err, fault.KindRefused, store.ErrTaskEnded)
			assert.Contains(t, err.Error(), "stopped")
		}
	}
	found, err := st.Task(t.Context(), task.ID)
	require.NoError(t, err)
	found.ReadAt = end.ReadAt
	assert.Equal(t, end, found)
}

// testSwapRaces changes one version concurrently, several times: one call succeeds, and all
// of its fields are stored.
func testSwapRaces(t *testing.T, s Subject) {
	t.Helper()
	const rounds, runners = 8, 16
	st := s.Store
	kept := mustAdd(t, st, exampleTask(1))
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
				requireRefused(t, err, fault.KindLocked, store.ErrSwapped)
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, []string{now.State, fmt.Sprintf(`{"by":%d}`, runner)}, []string{now.Owner, string(now.Body)})
			assert.Equal(t, kept.Fence+int64(runner), now.Fence)
		}
		kept = now
	}
}

// testAddRaces adds a task of one key concurrently: one call adds it, the others get it.
func testAddRaces(t *testing.T, s Subject) {
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
