package ops

import (
	"context"
	"errors"
	"os"
	"time"

	"sbx/internal/process"
	"sbx/internal/task"
)

// OnInterrupts handles the interrupts of an operator until the func that it returns is
// called: once ctx has ended, by an interrupt or by a time limit, first is called, which says so on the
// screen; the next decision of the operator (process.DropRepeats) calls leave, so that the rest is left to
// the next process.
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
		if !process.DropRepeats(signals, end) {
			return
		}
		select {
		case <-signals:
			leave(context.Cause(ctx))
		case <-end:
		}
	}()
	return func() { close(end) }
}

// RevokeOnAbandon forbids the publication of a task that is left before its end, where the
// stop was not written yet: a process that resumes it must not publish work that the operator
// has abandoned.
func RevokeOnAbandon(ctx context.Context, watch Reporter, options task.Options, t task.Task) task.Task {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	now, err := options.Ledger.Change(ctx, t.ID, func(n *task.Task) error { return n.Stop(options.Owner.Who) })
	switch {
	case err != nil && !errors.Is(err, task.ErrFinal):
		watch.Warn("task " + t.ID + " is left as it is: the next sbx continues with it, and `sbx stop " + t.ID + "` stops it")
		return t
	case !now.State.Final():
		watch.Warn("task " + t.ID + " will not publish; its sandboxes are left to the next sbx, or to `sbx stop " + t.ID + "`")
	}
	return now
}
