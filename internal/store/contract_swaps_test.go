package store_test

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
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

func testSwaps(t *testing.T, s subject) {
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
func testSwapRaces(t *testing.T, s subject) {
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
func testAddRaces(t *testing.T, s subject) {
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

func withReservation(task store.Task, budget string, mb int64) store.Task {
	task.Budget, task.ReserveMB = budget, mb
	return task
}

func testBudgets(t *testing.T, s subject) {
	t.Helper()
	st := s.Store
	a, b := mustAdd(t, st, store.Task{ID: "a"}), mustAdd(t, st, store.Task{ID: "b", Budget: "fleet"})
	refuse := func(task store.Task) {
		t.Helper()
		_, err := st.SwapTask(t.Context(), task, 1000)
		requireRefused(t, err, fault.KindRefused, store.ErrBudget)
		now, err := st.Task(t.Context(), task.ID)
		require.NoError(t, err)
		assert.Equal(t, task.Version, now.Version, "nothing is written")
	}
	refuse(withReservation(a, "fleet", 1001))
	a = mustSwap(t, st, withReservation(a, "fleet", 600), 1000)
	refuse(withReservation(b, "fleet", 401))
	b = mustSwap(t, st, withReservation(b, "fleet", 400), 1000)
	refuse(withReservation(a, "fleet", 601))
	a = mustSwap(t, st, withReservation(a, "fleet", 600), 10) // a reservation that does not grow is not checked
	a = mustSwap(t, st, withReservation(a, "fleet", 599), 10)
	a = mustSwap(t, st, withReservation(a, "fleet", 600), 1000)
	b = mustSwap(t, st, withReservation(b, "other", 400), 400) // each budget has a sum of its own
	a = mustSwap(t, st, withReservation(a, "fleet", 1000), 1000)
	refuse(withReservation(b, "fleet", 400)) // the same amount, all of it new to this budget
	b = mustSwap(t, st, withReservation(b, "", 400), 1)
	refuse(withReservation(b, "fleet", 1))

	end := a
	end.Ended = true
	mustSwap(t, st, end, 1000)
	b = mustSwap(t, st, withReservation(b, "fleet", 1000), 1000) // an ended task reserves nothing
	end = withReservation(b, "fleet", 5000)
	end.Ended = true
	mustSwap(t, st, end, 1000)
}

// testBudgetRaces lets many tasks reserve at once: as many succeed as fit, and the sum
// never exceeds the limit.
func testBudgetRaces(t *testing.T, s subject) {
	t.Helper()
	const runners, each, limit = 32, 100, 1000
	st := s.Store
	list := make([]store.Task, runners)
	for i := range list {
		list[i] = mustAdd(t, st, store.Task{ID: fmt.Sprintf("t-%02d", i)})
	}
	sum := func() (sum int64) {
		live, err := st.Tasks(t.Context(), store.TaskQuery{Live: true})
		if err != nil {
			t.Error(err)
		}
		for _, one := range live {
			sum += one.ReserveMB
		}
		assert.LessOrEqual(t, sum, int64(limit))
		return sum
	}
	var done atomic.Bool
	var watch, wg sync.WaitGroup
	watch.Go(func() {
		for !done.Load() {
			sum()
		}
	})
	for range 3 {
		for i := range list {
			wg.Go(func() {
				kept, err := st.SwapTask(t.Context(), withReservation(list[i], "fleet", each), limit)
				if err == nil {
					list[i] = kept
					return
				}
				assert.ErrorIs(t, err, store.ErrBudget)
			})
		}
		wg.Wait()
		assert.EqualValues(t, limit, sum())
		list = endReserving(t, st, list)
	}
	done.Store(true)
	watch.Wait()
	assert.Len(t, list, runners-3*limit/each)
}

func endReserving(t *testing.T, st store.Store, list []store.Task) (others []store.Task) {
	t.Helper()
	for _, one := range list {
		if one.ReserveMB == 0 {
			others = append(others, one)
			continue
		}
		one.Ended = true
		mustSwap(t, st, one, 0)
	}
	return others
}
