package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/triage"
)

const (
	historyAge   = 15 * time.Second // how old the records may be that a look judges by
	historyLimit = 2 * time.Second  // what a slow store may cost a verb that only looks
	// historyRuns is how many of the newest cleanup runs are read: two hours of one every
	// five minutes.
	historyRuns = 24
)

// records is fleet.History: the tasks in the store and the journals of cleanup. Each is
// read when it is first needed and kept for a short time, so that many looks of one run
// cost one reading. What cannot be read is unknown.
type records struct {
	open func(write bool) (store.Store, error)
	runs func(ctx context.Context) []cleanup.History // newest first
	now  func() time.Time

	mu      sync.Mutex
	tasks   *task.History // nil = they could not be read
	older   map[string]*task.Task
	tasksAt time.Time
	cleaned []cleanup.History
	runsAt  time.Time
}

func newRecords(open func(bool) (store.Store, error), runs func(context.Context) []cleanup.History, now func() time.Time) *records {
	return &records{open: open, runs: runs, now: now}
}

// OfSandbox is fleet.History's.
func (r *records) OfSandbox(ctx context.Context, s sandbox.Sandbox) fleet.SandboxHistory {
	r.mu.Lock()
	defer r.mu.Unlock()
	tasks := r.recentTasks(ctx)
	if tasks == nil {
		return fleet.SandboxHistory{}
	}
	return tasks.Sandbox(s, func(id string) (task.Task, bool) { return r.byID(ctx, id) })
}

// OfProfile is fleet.History's.
func (r *records) OfProfile(ctx context.Context, profile string) triage.FleetSignals {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runsAt.IsZero() || time.Since(r.runsAt) > historyAge {
		limited, stop := context.WithTimeout(ctx, historyLimit)
		defer stop()
		r.cleaned, r.runsAt = r.runs(limited), time.Now()
	}
	sig := cleanup.SignalsOf(r.cleaned, profile)
	if tasks := r.recentTasks(ctx); tasks != nil {
		p := tasks.Profile(profile)
		sig.CreateFailures, sig.Attempts, sig.AttemptsTimedOut = p.CreateFailures, p.Attempts, p.TimedOut
	}
	return sig
}

// recentTasks are the tasks that are not over, and those of the last day; nil where they
// cannot be read.
func (r *records) recentTasks(ctx context.Context) *task.History {
	if !r.tasksAt.IsZero() && time.Since(r.tasksAt) <= historyAge {
		return r.tasks
	}
	r.tasks, r.older = nil, map[string]*task.Task{}
	err := r.readTasks(ctx, func(ctx context.Context, l task.Ledger) error {
		tasks, err := task.ReadHistory(ctx, l, r.now())
		r.tasks = &tasks
		return err
	})
	if err != nil {
		r.tasks = nil
	}
	r.tasksAt = time.Now()
	return r.tasks
}

// byID reads a task that is over for longer than a day.
func (r *records) byID(ctx context.Context, id string) (task.Task, bool) {
	t, asked := r.older[id]
	if !asked {
		err := r.readTasks(ctx, func(ctx context.Context, l task.Ledger) error {
			got, err := l.Read(ctx, id)
			t = &got
			return err
		})
		if err != nil {
			t = nil
		}
		r.older[id] = t
	}
	if t == nil {
		return task.Task{}, false
	}
	return *t, true
}

func (r *records) readTasks(ctx context.Context, do func(context.Context, task.Ledger) error) error {
	ctx, stop := context.WithTimeout(ctx, historyLimit)
	defer stop()
	st, err := r.open(false)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, task.Ledger{Store: st}), st.Close())
}

// openRecords are those of this run. Where the state directory cannot be used, which is a
// warning of the verbs that need it, nothing is on record.
func (a *app) openRecords() *records {
	open := func(write bool) (store.Store, error) {
		c, err := a.config()
		if err != nil {
			return nil, err
		}
		if _, unusable := c.State(); unusable != nil && c.StoreURL == "" {
			return nil, unusable
		}
		return a.openStore(write)
	}
	return newRecords(open, func(ctx context.Context) []cleanup.History { return a.commandDeps().CleanupRuns(ctx, historyRuns) }, a.process.Now)
}
