package task

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// Store is what tasks need of the store.
type Store interface {
	AddTask(ctx context.Context, t store.Task) (kept store.Task, added bool, err error)
	Task(ctx context.Context, id string) (store.Task, error)
	Tasks(ctx context.Context, q store.TaskQuery) ([]store.Task, error)
	SwapTask(ctx context.Context, t store.Task, limitMB int64) (store.Task, error)
	AwaitTask(ctx context.Context, id string, version int64) (store.Task, error)
}

// Ledger stores tasks, and changes them by their rules alone.
type Ledger struct {
	Store Store
	// LimitMB bounds the memory that all tasks of one budget reserve; 0 = no limit.
	LimitMB int64
}

// Add stores a new task. A task of the same key and spec is returned instead, with false;
// one of the same key and another spec is fault.KindUsage.
func (l Ledger) Add(ctx context.Context, t Task) (Task, bool, error) {
	kept, added, err := l.addRow(ctx, t)
	if err != nil {
		return t, false, err
	}
	if !added && kept.Spec != t.Spec.Fingerprint() {
		return t, false, fault.Usage("the key %q belongs to task %s, which has another command or other settings", t.Key, kept.ID).
			WithHint("`sbx tasks show %s` shows them; use another --key", kept.ID)
	}
	got, err := decodeRow(kept)
	return got, added, err
}

// AddUnder is Add for a key that may have been used in vain: a task of the key that releases it gets a successor,
// KEY~2, then KEY~3. Every process goes through the same keys, so that still only one of them adds the task.
func (l Ledger) AddUnder(ctx context.Context, t Task, releases func(*Task) bool) (Task, bool, error) {
	key := t.Key
	for n := 2; key != ""; n++ {
		holder, added, err := l.Enlist(ctx, t)
		if err != nil || added {
			return holder, added, err
		}
		if !holder.State.Final() || !releases(&holder) {
			break
		}
		t.Key = SuccessorKey(key, n)
	}
	return l.Add(ctx, t)
}

// SuccessorKey is the key of the n-th task under a key, n from 2.
func SuccessorKey(key string, n int) string { return key + "~" + strconv.Itoa(n) }

// HasKey reports whether the task has the key or succeeds a task that has it.
func (t *Task) HasKey(key string) bool {
	n, is := strings.CutPrefix(t.Key, key+"~")
	_, err := strconv.Atoi(n)
	return key != "" && (t.Key == key || is && err == nil)
}

// Enlist is Add for a task of a batch, whose key names the work: a task of the same key is
// given back with false although its limits differ. The caller compares the work itself, by
// Spec.Work.
func (l Ledger) Enlist(ctx context.Context, t Task) (Task, bool, error) {
	kept, added, err := l.addRow(ctx, t)
	if err != nil {
		return t, false, err
	}
	got, err := decodeRow(kept)
	return got, added, err
}

func (l Ledger) addRow(ctx context.Context, t Task) (store.Task, bool, error) {
	row, err := t.encodeRow()
	if err != nil {
		return row, false, err
	}
	row.Spec = t.Spec.Fingerprint()
	return l.Store.AddTask(ctx, row)
}

// Read reads a task by its exact id; fault.KindNotFound.
func (l Ledger) Read(ctx context.Context, id string) (Task, error) {
	row, err := l.Store.Task(ctx, id)
	if err != nil {
		return Task{}, err
	}
	return decodeRow(row)
}

// List lists tasks, the newest first.
func (l Ledger) List(ctx context.Context, q store.TaskQuery) ([]Task, error) {
	rows, err := l.Store.Tasks(ctx, q)
	if err != nil {
		return nil, err
	}
	tasks := make([]Task, 0, len(rows))
	for _, row := range rows {
		t, err := decodeRow(row)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// Await returns the task as soon as it differs from t.
func (l Ledger) Await(ctx context.Context, t Task) (Task, error) {
	row, err := l.Store.AwaitTask(ctx, t.ID, t.version)
	if err != nil {
		return t, err
	}
	return decodeRow(row)
}

// Change applies a rule to the stored task and writes the result. It is repeated when
// another process has changed the task meanwhile. An error of the rule ends it, and nothing
// is written. After an error of the store it is unknown whether the change was written.
func (l Ledger) Change(ctx context.Context, id string, rule func(*Task) error) (Task, error) {
	return l.changeFrom(ctx, id, rule, new(store.Task))
}

// changeFrom is Change that may be called again after an error of the store. asked is what
// the earlier call tried to write: where it was written after all, that is the result.
func (l Ledger) changeFrom(ctx context.Context, id string, rule func(*Task) error, asked *store.Task) (Task, error) {
	for {
		t, err := l.Read(ctx, id)
		if err != nil {
			return t, err
		}
		if before, err := t.encodeRow(); err == nil && asked.ID != "" && before.Version > asked.Version &&
			before.Fence == asked.Fence && bytes.Equal(before.Body, asked.Body) {
			return t, nil
		}
		over := t.State.Final()
		switch err := rule(&t); {
		case errors.Is(err, errUnchanged):
			return t, nil
		case err != nil:
			return t, err
		case over:
			return t, ErrFinal
		}
		kept, again, err := l.swapTask(ctx, t, asked)
		if !again {
			return kept, err
		}
	}
}

// swapTask writes a task; true = another process has changed or ended it meanwhile, so that
// the rule has to be applied again. Only changes that ask for memory are checked against
// the budget.
func (l Ledger) swapTask(ctx context.Context, t Task, asked *store.Task) (Task, bool, error) {
	row, err := t.encodeRow()
	if err != nil {
		return t, false, err
	}
	limit := l.LimitMB
	if !t.needsAdmission {
		limit = 0
	}
	kept, err := l.Store.SwapTask(ctx, row, limit)
	switch {
	case errors.Is(err, store.ErrSwapped), errors.Is(err, store.ErrTaskEnded):
		return t, true, nil
	case err != nil:
		*asked = row
		return t, false, err
	}
	now, err := decodeRow(kept)
	return now, false, err
}

func (t *Task) encodeRow() (store.Task, error) {
	body, err := json.Marshal(t)
	if err != nil {
		return store.Task{}, fault.New(fault.KindUnknown, "task %s cannot be written: %w", t.ID, err)
	}
	row := store.Task{
		ID: t.ID, Key: t.Key, State: string(t.State), Ended: t.State.Final(), Version: t.version, Fence: t.Fence,
		LeaseUntil: t.LeaseUntil, Budget: t.Spec.Budget, ReserveMB: t.reservedMB(), CreatedAt: t.CreatedAt, Body: body,
	}
	if !row.Ended && t.Owner.PID != 0 {
		row.Owner = t.Owner.Host + ":" + strconv.Itoa(t.Owner.PID)
	}
	return row, nil
}

// reservedMB is the memory that the task reserves in its budget, from its first attempt
// until it is over: the most that an attempt was given, since the next one gets as much. It
// grows only with a change that is admitted. A task that waited for more than there is
// reserves none, or two such tasks would wait for each other.
func (t *Task) reservedMB() int64 {
	if len(t.Attempts) == 0 || t.State.Final() || t.Yielded && t.AllGone() {
		return 0
	}
	most := t.Spec.MemoryBytes / sandbox.MiB
	for _, a := range t.Attempts {
		most = max(most, a.MemoryMB)
	}
	return most
}

func decodeRow(row store.Task) (Task, error) {
	var t Task
	if err := json.Unmarshal(row.Body, &t); err != nil {
		return t, fault.New(fault.KindUnknown, "the record of task %s cannot be read: %w", row.ID, err).
			WithHint("a newer sbx may have written it: install that version here too")
	}
	t.version, t.Fence, t.LeaseUntil, t.ReadAt, t.CreatedAt = row.Version, row.Fence, row.LeaseUntil, row.ReadAt, row.CreatedAt
	return t, nil
}

// waitsForBudget is why a task waits whose memory does not fit into the budget now.
const waitsForBudget = "memory_budget"

// FairStore is a Store that gives the memory of a budget in the order in which tasks were
// created: the first reservation of a task comes after every older task that waits, so that
// small tasks do not overtake a big one for ever. A task that holds memory already does not
// queue, because an older task may wait for that memory.
func FairStore(s Store) Store { return fairStore{s} } //nolint:ireturn // it is one, with a rule more

type fairStore struct{ Store }

// SwapTask is Store's. It also returns store.ErrBudget inside fault.KindRefused where an
// older task of the budget waits.
func (q fairStore) SwapTask(ctx context.Context, t store.Task, limitMB int64) (store.Task, error) {
	if t.Budget != "" && limitMB > 0 && t.ReserveMB > 0 && t.State == string(Assigned) {
		if err := q.checkTurn(ctx, t); err != nil {
			return store.Task{}, err
		}
	}
	return q.Store.SwapTask(ctx, t, limitMB)
}

// checkTurn returns an error when an older task waits for the same memory.
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
		older := cmp.Or(other.CreatedAt.Compare(before.CreatedAt), strings.Compare(other.ID, before.ID)) < 0
		if other.Budget == t.Budget && older && waitsForMemory(other) {
			return fault.New(fault.KindRefused, "%w: %s has waited longer", store.ErrBudget, other.ID)
		}
	}
	return nil
}

// waitsForMemory reports whether a living process waits for memory for a task that has
// none. A dead process does not hold up others: its lease expires.
func waitsForMemory(t store.Task) bool {
	if t.ReserveMB > 0 || !t.LeaseUntil.After(t.ReadAt) {
		return false
	}
	var body struct {
		Waits string `json:"waits"`
	}
	return json.Unmarshal(t.Body, &body) == nil && body.Waits == waitsForBudget
}
