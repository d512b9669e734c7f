package ops

import (
	"context"
	"errors"
	"os"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/publish"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// RunTask runs a task in this process. The first interrupt stops it, fenced and verified;
// the second one leaves what is still to be ended to the next process.
func (e *Env) RunTask(ctx context.Context, watch Reporter, options task.Options, t task.Task, env []string) (task.Task, error) {
	life, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	defer e.OnInterrupts(ctx, func() { watch.Warn("stopping task " + t.ID + "; once more leaves it to the next sbx") }, leave)()
	now, err := e.RunControlled(ctx, watch, options.Ledger, t, func() (task.Task, error) {
		return task.NewRunner(options, env, ctx.Done()).Run(life, t)
	})
	if ctx.Err() != nil && err != nil && !now.State.Final() {
		now = revokeOnAbandon(ctx, watch, options, now)
	}
	return now, err
}

// revokeOnAbandon forbids the publication of a task that is left before its end, where the
// stop was not written yet: whoever resumes it must not publish what the operator has given
// up.
func revokeOnAbandon(ctx context.Context, watch Reporter, options task.Options, t task.Task) task.Task {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	now, err := options.Ledger.Change(ctx, t.ID, func(n *task.Task) error { return n.Stop(options.Owner.Who) })
	switch {
	case err != nil && !errors.Is(err, task.ErrFinal):
		watch.Warn("task " + t.ID + " is left as it is: the next sbx goes on with it, and `sbx stop " + t.ID + "` stops it")
		return t
	case !now.State.Final():
		watch.Warn("task " + t.ID + " will not publish; what was made for it is left to the next sbx, and to `sbx stop " + t.ID + "`")
	}
	return now
}

// OnInterrupts handles the interrupts of an operator until the func that it returns is
// called: the first one has ended ctx, and first is called; the second one calls leave, so
// that the rest is left to the next process. Where a time limit has ended ctx, the next
// interrupt does that.
func (e *Env) OnInterrupts(ctx context.Context, first func(), leave context.CancelCauseFunc) (over func()) {
	var signals <-chan os.Signal
	done := func() {}
	if e.Process.Signals != nil {
		signals, done = e.Process.Signals()
	}
	end := make(chan struct{})
	go func() {
		defer done()
		select {
		case <-ctx.Done():
			first()
		case <-end:
			return
		}
		interrupts := 2 // the one that ended ctx is received here, too
		if fault.KindOf(context.Cause(ctx)) == fault.KindTimeout {
			interrupts = 1
		}
		for range interrupts {
			select {
			case <-signals:
			case <-end:
				return
			}
		}
		leave(context.Cause(ctx))
	}()
	return func() { close(end) }
}

// TaskParts are what tasks are joined with.
type TaskParts struct {
	Fleet    *fleet.Fleet
	Store    store.Store
	Secret   publish.Target // the push target with its credentials; zero = none
	BudgetMB int64          // what all tasks of a budget may hold together; 0 = no bound
	Notice   func(text string)
	// Protected says why the operator keeps a sandbox; WithTasks sets it.
	Protected func(sandbox.Sandbox) string
}
