package task

import (
	"context"
	"encoding/json"

	"sbx/internal/fault"
	"sbx/internal/store"
)

// waitsForBudget is what a task waits for that does not fit into its budget now.
const waitsForBudget = "memory_budget"

// FairStore is a Store that gives the memory of a budget in the order in which tasks
// were created: who takes of it for the first time comes after every older task that
// waits, so that a big one is not overtaken for ever by small ones. A task that
// holds some already does not queue: who waits may be waiting for just that.
func FairStore(s Store) Store { return fairStore{s} } //nolint:ireturn // it is one, with a rule more

type fairStore struct{ Store }

// SwapTask is Store's; store.ErrBudget inside fault.KindRefused also where an older
// task of the budget waits.
func (q fairStore) SwapTask(ctx context.Context, t store.Task, limitMB int64) (store.Task, error) {
	if t.Budget != "" && limitMB > 0 && t.ReserveMB > 0 && t.State == string(Assigned) {
		if err := q.checkTurn(ctx, t); err != nil {
			return store.Task{}, err
		}
	}
	return q.Store.SwapTask(ctx, t, limitMB)
}

// checkTurn is nil when no older task waits for the same memory.
func (q fairStore) checkTurn(ctx context.Context, t store.Task) error {
	before, err := q.Task(ctx, t.ID)
	if err != nil {
		return err
	}
	if before.ReserveMB > 0 {
		return nil
	}
	live, err := q.Tasks(ctx, store.TaskQuery{Live: true})
	if err != nil {
		return err
	}
	for _, other := range live {
		if other.Budget == t.Budget && createdBefore(other, before) && waitsForMemory(other) {
			return fault.New(fault.KindRefused, "%w: %s waits for longer", store.ErrBudget, other.ID)
		}
	}
	return nil
}

// createdBefore is the order of creation.
func createdBefore(a, b store.Task) bool {
	if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
		return c < 0
	}
	return a.ID < b.ID
}

// waitsForMemory says that a living process waits for memory for a task that has none. One
// whose process is gone does not hold up others: its lease ends.
func waitsForMemory(t store.Task) bool {
	if t.ReserveMB > 0 || !t.LeaseUntil.After(t.ReadAt) {
		return false
	}
	var body struct {
		Waits string `json:"waits"`
	}
	return json.Unmarshal(t.Body, &body) == nil && body.Waits == waitsForBudget
}
