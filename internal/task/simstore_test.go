package task_test

import (
	"context"
	"encoding/json"
	"time"

	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/testkit/schedule"
)

// ledger is one process's connection to the store.
type ledger struct{ p *proc }

func (l ledger) AddTask(ctx context.Context, t store.Task) (store.Task, bool, error) {
	type answer struct {
		kept  store.Task
		added bool
	}
	got, err := ask(ctx, l.p, "store", "add", func() (answer, error) {
		kept, added, err := l.p.s.mem.AddTask(context.Background(), t)
		return answer{kept, added}, err
	})
	return got.kept, got.added, err
}

func (l ledger) Task(ctx context.Context, id string) (store.Task, error) {
	return ask(ctx, l.p, "store", "read", func() (store.Task, error) { return l.p.s.mem.Task(context.Background(), id) })
}

func (l ledger) Tasks(ctx context.Context, q store.TaskQuery) ([]store.Task, error) {
	return ask(ctx, l.p, "store", "list", func() ([]store.Task, error) { return l.p.s.mem.Tasks(context.Background(), q) })
}

func (l ledger) SwapTask(ctx context.Context, t store.Task, limitMB int64) (store.Task, error) {
	return ask(ctx, l.p, "store", "swap", func() (store.Task, error) {
		before, lost := l.p.s.mem.Task(context.Background(), t.ID)
		after, err := l.p.s.mem.SwapTask(context.Background(), t, limitMB)
		if err == nil && lost == nil {
			l.p.s.onCommit(l.p, before, after)
		}
		return after, err
	})
}

// AwaitTask returns changes late, like a poll.
func (l ledger) AwaitTask(ctx context.Context, id string, version int64) (store.Task, error) {
	if _, err := l.hear(ctx, id); err != nil {
		return store.Task{}, err
	}
	if _, err := l.p.s.mem.AwaitTask(ctx, id, version); err != nil {
		return store.Task{}, err
	}
	if !schedule.Sleep(ctx, time.Duration(l.p.s.Roll("hears", l.p.n, id, version)*float64(2*time.Second))) {
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
