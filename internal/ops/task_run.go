package ops

import (
	"context"
	"encoding/json"
	"fmt"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/publish"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// TaskParts are what tasks are joined with.
type TaskParts struct {
	Fleet    *fleet.Fleet
	Store    store.Store
	Secret   publish.Target // the push target with its credentials; zero = none
	BudgetMB int64          // what all tasks of a budget may hold together; 0 = no bound
	Watch    Reporter       // who is told of what concerns no single task; nil = nobody, and no end is in a journal
	// Protected says why the operator keeps a sandbox; WithTasks sets it.
	Protected func(sandbox.Sandbox) string
}

// Notice shows the operator what concerns no single task.
func (p TaskParts) Notice(text string) {
	if p.Watch != nil {
		p.Watch.Note(text)
	}
}

// WithTasks opens the store and joins it with a fleet. Launching and stopping fail
// closed: without a store nothing of it is done.
func (e *Env) WithTasks(ctx context.Context, parts TaskParts, do func(store.Store, task.Options) error) error {
	if err := e.MayChange(); err != nil {
		return err
	}
	st, err := e.Store(true)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // what had to be kept was kept by its own call
	c, err := e.Config()
	if err != nil {
		return err
	}
	parts.Store, parts.Protected = st, func(s sandbox.Sandbox) string { return e.Protection(c, nil).Keeps(s, safety.ByWord) }
	options, err := e.Tasks(ctx, parts)
	if err != nil {
		return err
	}
	if parts.Watch != nil {
		options.BeginEnds = func(ctx context.Context, why runs.Origin, targets []sandbox.Sandbox) *runs.Run {
			return e.EndsOpener(parts.Watch, why)(ctx, targets)
		}
	}
	return do(st, options)
}

// SweepTasks settles what dead processes left and ends what was kept for long enough,
// for a moment at most.
func (e *Env) SweepTasks(ctx context.Context, watch Reporter, options task.Options) {
	options.Continue = e.startBackgroundRunner
	adopted, err := task.Sweep(ctx, options)
	for _, a := range adopted {
		e.NotifyFailedTask(watch, a.Task) // its own process told nobody
		if a.Task.Sweeps > 1 && !a.Task.State.Final() {
			continue // an earlier sweep has said it
		}
		watch.Note(fmt.Sprintf("task %s belonged to a dead process: it is %s now", a.Task.ID, WithDetail(string(a.Task.State), string(a.Task.Phase))))
		if fault.KindOf(a.Err) == fault.KindLauncher {
			watch.Warn(a.Err.Error())
		}
	}
	if err != nil && ctx.Err() == nil {
		watch.Warn("tasks of dead processes could not be read: " + err.Error())
	}
	ended, err := task.EndKept(ctx, options)
	for _, ref := range ended {
		watch.Note(ref.String() + " was kept until its time limit: it is gone now")
	}
	if err != nil && ctx.Err() == nil {
		watch.Warn("kept sandboxes could not be read: " + err.Error())
	}
}

// RunnerOrder is the order to a background runner, sent through a pipe: it holds values of the
// environment, so it is never stored.
type RunnerOrder struct {
	Task     string     `json:"task"`
	From     task.Owner `json:"from"` // who gives it
	Env      []string   `json:"env"`
	Push     string     `json:"push"` // with its credentials
	BudgetMB int64      `json:"budget_mb"`
	Joblog   string     `json:"joblog"`
}

// RunnerVerb is the hidden verb of a background runner.
const RunnerVerb = "run-task"

// StartRunner starts a background runner.
func (e *Env) StartRunner(ctx context.Context, o RunnerOrder) (task.Owner, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return task.Owner{}, err
	}
	runner, err := e.Background(ctx, o.Task, raw)
	if err != nil {
		return runner, fault.New(fault.KindLauncher, "the background runner of task %s could not be started: %w", o.Task, err).
			WithHint("`sbx stop %s` ends the task", o.Task)
	}
	return runner, nil
}

// startBackgroundRunner starts a background runner for a task that a sweep holds.
func (e *Env) startBackgroundRunner(ctx context.Context, t task.Task) (task.Owner, error) {
	return e.StartRunner(ctx, RunnerOrder{Task: t.ID, From: t.Owner})
}

// ControlPlane receives the progress of tasks.
type ControlPlane interface {
	// Ended reports how a task ended, within ten seconds; a second report with the same key
	// changes nothing.
	Ended(ctx context.Context, key string, report any) error
	// Beat says once that something goes on.
	Beat(ctx context.Context, beat any) error
	// TakesEvents says that it takes events of a worker, in the form of OmoiOS.
	TakesEvents() bool
	Close()
}
