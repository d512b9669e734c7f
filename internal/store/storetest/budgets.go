package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
)

// withReservation is a copy of the task with a reservation.
func withReservation(task store.Task, budget string, mb int64) store.Task {
	task.Budget, task.ReserveMB = budget, mb
	return task
}

func testBudgets(t *testing.T, s Subject) {
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
func testBudgetRaces(t *testing.T, s Subject) {
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

// endReserving ends the tasks with a reservation, and returns the others.
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
