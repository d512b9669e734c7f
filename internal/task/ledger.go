package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

func number(n int) string { return strconv.Itoa(n) }

// Store is what tasks need of the place where they are kept.
type Store interface {
	AddTask(ctx context.Context, t store.Task) (kept store.Task, added bool, err error)
	Task(ctx context.Context, id string) (store.Task, error)
	Tasks(ctx context.Context, q store.TaskQuery) ([]store.Task, error)
	SwapTask(ctx context.Context, t store.Task, limitMB int64) (store.Task, error)
	AwaitTask(ctx context.Context, id string, version int64) (store.Task, error)
}

// Ledger keeps tasks, and changes them by their rules alone.
type Ledger struct {
	Store Store
	// LimitMB bounds what all tasks of one budget hold together; 0 = nothing does.
	LimitMB int64
}

// Add keeps a new task. One of the same key that asks for the same is given back
// instead, with false; one that asks for something else is fault.KindUsage.
func (l Ledger) Add(ctx context.Context, t Task) (Task, bool, error) {
	row, err := t.encodeRow()
	if err != nil {
		return t, false, err
	}
	row.Spec = t.Spec.Fingerprint()
	kept, added, err := l.Store.AddTask(ctx, row)
	if err != nil {
		return t, false, err
	}
	if !added && kept.Spec != row.Spec {
		return t, false, fault.Usage("the key %q belongs to task %s, which asks for something else", t.Key, kept.ID).
			WithHint("`sbx tasks show %s` says what; use another --key", kept.ID)
	}
	got, err := decodeRow(kept)
	return got, added, err
}

// Read gives a task by its exact id; fault.KindNotFound.
func (l Ledger) Read(ctx context.Context, id string) (Task, error) {
	row, err := l.Store.Task(ctx, id)
	if err != nil {
		return Task{}, err
	}
	return decodeRow(row)
}

// List gives tasks, the newest first.
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

// Await gives the task as soon as it differs from what was read.
func (l Ledger) Await(ctx context.Context, t Task) (Task, error) {
	row, err := l.Store.AwaitTask(ctx, t.ID, t.version)
	if err != nil {
		return t, err
	}
	return decodeRow(row)
}

// Change applies a rule to what is kept and writes the result, as often as it takes
// to be the one who does. The rule's own error ends it, and nothing is written. After
// an error of the store it is open whether it was.
func (l Ledger) Change(ctx context.Context, id string, rule func(*Task) error) (Task, error) {
	return l.changeFrom(ctx, id, rule, new(store.Task))
}

// changeFrom is Change, which may be called again after an error of the store: asked is
// what was to be written then. Where it was written after all, that is the answer,
// and not that somebody else was faster.
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

// swapTask writes a task; true = somebody else has changed or ended it meanwhile, so that
// the rule has to judge what it has become. Only what asks for memory is held against
// the budget: facts are written whatever they cost.
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
	case errors.Is(err, store.ErrSwapped), errors.Is(err, store.ErrOver):
		return t, true, nil
	case err != nil:
		*asked = row
		return t, false, err
	}
	now, err := decodeRow(kept)
	return now, false, err
}

// encodeRow is how a task is kept.
func (t *Task) encodeRow() (store.Task, error) {
	body, err := json.Marshal(t)
	if err != nil {
		return store.Task{}, fault.New(fault.KindUnknown, "task %s cannot be written: %w", t.ID, err)
	}
	row := store.Task{
		ID: t.ID, Key: t.Key, State: string(t.State), Over: t.State.Final(), Version: t.version, Fence: t.Fence,
		LeaseUntil: t.LeaseUntil, Budget: t.Spec.Budget, ReserveMB: t.reservedMB(), CreatedAt: t.CreatedAt, Body: body,
	}
	if !row.Over && t.Owner.PID != 0 {
		row.Owner = t.Owner.Host + ":" + number(t.Owner.PID)
	}
	return row, nil
}

// reservedMB is the memory that the task holds of its budget, from before anything is made
// until it is over: the most that an attempt was given, since the next one gets as much.
// It never grows but by a change that is admitted. Who has waited for more than there is
// holds none: two of them would wait for each other.
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

// decodeRow is the way back.
func decodeRow(row store.Task) (Task, error) {
	var t Task
	if err := json.Unmarshal(row.Body, &t); err != nil {
		return t, fault.New(fault.KindUnknown, "what is kept of task %s cannot be read: %w", row.ID, err).
			WithHint("a newer sbx may have written it: install that version here too")
	}
	t.version, t.Fence, t.LeaseUntil, t.ReadAt, t.CreatedAt = row.Version, row.Fence, row.LeaseUntil, row.ReadAt, row.CreatedAt
	return t, nil
}

// timeLeft is how much of a time was left at the last read, by the clock of the store
// alone; 0 where there is no such time.
func timeLeft(until, readAt time.Time) time.Duration {
	if until.IsZero() {
		return 0
	}
	return until.Sub(readAt)
}
