package task_test

import (
	"context"
	"encoding/json"
	"time"

	"sbx/internal/store"
	"sbx/internal/task"
)

// ledger is one process's connection to the store.
type ledger struct{ p *proc }

// A request may take effect after its sender has given up: so results are in variables that
// nobody reads then, and are never named.

func (l ledger) AddTask(ctx context.Context, t store.Task) (store.Task, bool, error) {
	var kept store.Task
	var added bool
	var err error
	failed := l.p.call(ctx, "store", "add", func() { kept, added, err = l.p.s.mem.AddTask(context.Background(), t) })
	if failed != nil {
		return store.Task{}, false, failed
	}
	return kept, added, err
}

func (l ledger) Task(ctx context.Context, id string) (store.Task, error) {
	var t store.Task
	var err error
	if failed := l.p.call(ctx, "store", "read", func() { t, err = l.p.s.mem.Task(context.Background(), id) }); failed != nil {
		return store.Task{}, failed
	}
	return t, err
}

func (l ledger) Tasks(ctx context.Context, q store.TaskQuery) ([]store.Task, error) {
	var t []store.Task
	var err error
	if failed := l.p.call(ctx, "store", "list", func() { t, err = l.p.s.mem.Tasks(context.Background(), q) }); failed != nil {
		return nil, failed
	}
	return t, err
}

func (l ledger) SwapTask(ctx context.Context, t store.Task, limitMB int64) (store.Task, error) {
	var after store.Task
	var err error
	failed := l.p.call(ctx, "store", "swap", func() {
		before, lost := l.p.s.mem.Task(context.Background(), t.ID)
		after, err = l.p.s.mem.SwapTask(context.Background(), t, limitMB)
		if err == nil && lost == nil {
			l.p.s.onCommit(l.p, before, after)
		}
	})
	if failed != nil {
		return store.Task{}, failed
	}
	return after, err
}

// AwaitTask returns changes late, like a poll.
func (l ledger) AwaitTask(ctx context.Context, id string, version int64) (store.Task, error) {
	if _, err := l.hear(ctx, id); err != nil {
		return store.Task{}, err
	}
	if _, err := l.p.s.mem.AwaitTask(ctx, id, version); err != nil {
		return store.Task{}, err
	}
	if !sleep(ctx, time.Duration(l.p.s.Roll("hears", l.p.n, id, version)*float64(2*time.Second))) {
		return store.Task{}, ctx.Err()
	}
	return l.hear(ctx, id)
}

// hear is Task, for AwaitTask.
func (l ledger) hear(ctx context.Context, id string) (store.Task, error) {
	return l.Task(context.WithValue(ctx, hears{}, true), id)
}

// hears marks the context of AwaitTask's reads.
type hears struct{}

// taskOf decodes a row.
func taskOf(row store.Task) task.Task {
	var t task.Task
	if err := json.Unmarshal(row.Body, &t); err != nil {
		panic(err)
	}
	t.Fence, t.LeaseUntil, t.ReadAt, t.CreatedAt = row.Fence, row.LeaseUntil, row.ReadAt, row.CreatedAt
	return t
}
