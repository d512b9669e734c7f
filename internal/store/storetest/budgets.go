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

// reserving is a task as it would be with a reservation.
func reserving(task store.Task, budget string, mb int64) store.Task {
	task.Budget, task.ReserveMB = budget, mb
	return task
}

func budgets(t *testing.T, s Subject) {
	t.Helper()
	st := s.Store
	a, b := added(t, st, store.Task{ID: "a"}), added(t, st, store.Task{ID: "b", Budget: "fleet"})
	refuse := func(task store.Task) {
		t.Helper()
		_, err := st.SwapTask(t.Context(), task, 1000)
		refused(t, err, fault.KindRefused, store.ErrBudget)
		now, err := st.Task(t.Context(), task.ID)
		require.NoError(t, err)
		assert.Equal(t, task.Version, now.Version, "nothing is written")
	}
	refuse(reserving(a, "fleet", 1001))
	a = swapped(t, st, reserving(a, "fleet", 600), 1000)
	refuse(reserving(b, "fleet", 401))
	b = swapped(t, st, reserving(b, "fleet", 400), 1000)
	refuse(reserving(a, "fleet", 601))
	a = swapped(t, st, reserving(a, "fleet", 600), 10) // what does not grow is not asked
	a = swapped(t, st, reserving(a, "fleet", 599), 10)
	a = swapped(t, st, reserving(a, "fleet", 600), 1000)
	b = swapped(t, st, reserving(b, "other", 400), 400) // each budget has a sum of its own
	a = swapped(t, st, reserving(a, "fleet", 1000), 1000)
	refuse(reserving(b, "fleet", 400)) // as much as before, and all of it new to this budget
	b = swapped(t, st, reserving(b, "", 400), 1)
	refuse(reserving(b, "fleet", 1))

	end := a
	end.Over = true
	swapped(t, st, end, 1000)
	b = swapped(t, st, reserving(b, "fleet", 1000), 1000) // who is over holds nothing
	end = reserving(b, "fleet", 5000)
	end.Over = true
	swapped(t, st, end, 1000)
}

// budgetRaces lets many tasks reserve at once: as many as fit do, and at no moment
// are there more.
func budgetRaces(t *testing.T, s Subject) {
	t.Helper()
	const runners, each, limit = 32, 100, 1000
	st := s.Store
	list := make([]store.Task, runners)
	for i := range list {
		list[i] = added(t, st, store.Task{ID: fmt.Sprintf("t-%02d", i)})
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
				kept, err := st.SwapTask(t.Context(), reserving(list[i], "fleet", each), limit)
				if err == nil {
					list[i] = kept
					return
				}
				assert.ErrorIs(t, err, store.ErrBudget)
			})
		}
		wg.Wait()
		assert.EqualValues(t, limit, sum())
		list = endedOnes(t, st, list)
	}
	done.Store(true)
	watch.Wait()
	assert.Len(t, list, runners-3*limit/each)
}

// endedOnes ends those that hold something, and gives the others.
func endedOnes(t *testing.T, st store.Store, list []store.Task) (others []store.Task) {
	t.Helper()
	for _, one := range list {
		if one.ReserveMB == 0 {
			others = append(others, one)
			continue
		}
		one.Over = true
		swapped(t, st, one, 0)
	}
	return others
}
