package task

import (
	"context"
	"errors"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
)

// expiredError ends a step because one of the task's limits was reached.
type expiredError struct{ why Reason }

func (e expiredError) Error() string { return "its " + string(e.why) + " limit was reached" }

// unwrittenStopError ends a step because the operator's stop could not be written. It says
// nothing about the step.
type unwrittenStopError struct{ error }

func (u unwrittenStopError) Unwrap() error { return u.error }

// errStoreUnreachable ends a step that may not go on while other processes cannot stop it
// through the store.
var errStoreUnreachable = fault.New(fault.KindUnavailable, "the store could not be reached for longer than a lease")

// timeLimit is one of the times that a step may take.
type timeLimit struct {
	why  Reason
	left time.Duration
}

// runGuarded runs one step for as long as this process owns the task: it renews the lease,
// watches for stops by other processes and by the operator of this one, and keeps the
// limits. The first of these that occurs ends the step's context and is the error.
func (r *Runner) runGuarded(ctx context.Context, t Task, limits []timeLimit, do func(context.Context) error) error {
	return r.runGuardedWithin(ctx, t, limits, 0, do)
}

// runGuardedWithin is runGuarded for a step that may go on for maxBlind without an answer
// of the store; 0 = for ever.
func (r *Runner) runGuardedWithin(ctx context.Context, t Task, limits []timeLimit, maxBlind time.Duration, do func(context.Context) error) error {
	ctx, cut := context.WithCancelCause(ctx)
	var guards sync.WaitGroup
	guards.Go(func() { r.keepLease(ctx, t, limits, maxBlind, cut) })
	if !t.Spec.NoPolling {
		guards.Go(func() { r.watchChanges(ctx, t, cut) })
	}
	err := do(ctx)
	cause := context.Cause(ctx)
	cut(nil)
	guards.Wait()
	if err != nil && cause != nil {
		return cause // the step may have had its effect: the next change of the task shows whether it counts
	}
	return err
}

// keepLease renews the lease, watches for the operator's stop and keeps the limits.
func (r *Runner) keepLease(ctx context.Context, t Task, limits []timeLimit, maxBlind time.Duration, cut context.CancelCauseFunc) {
	answered := time.Now()
	renew := time.NewTicker(RenewEvery)
	defer renew.Stop()
	var first timeLimit
	var over <-chan time.Time
	for i, l := range limits {
		if i == 0 || l.left < first.left {
			first = l
		}
	}
	if len(limits) > 0 {
		over = time.After(max(0, first.left))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.stop:
			_, err := r.changeTask(ctx, t.ID, func(n *Task) error { return n.Stop(r.o.Owner.Who) })
			if err == nil || errors.Is(err, ErrFinal) {
				cut(ErrStopped)
			} else {
				cut(unwrittenStopError{err})
			}
			return
		case <-over:
			cut(expiredError{first.why})
			return
		case <-renew.C:
			_, err := r.o.Ledger.Change(ctx, t.ID, func(n *Task) error { return n.Renew(t.Fence) })
			switch {
			case errors.Is(err, ErrNotOwner), errors.Is(err, ErrFinal):
				cut(ErrNotOwner)
				return
			case err == nil:
				answered = time.Now()
			case maxBlind > 0 && time.Since(answered) > maxBlind:
				cut(errStoreUnreachable)
				return
			} // a store that does not answer for a moment is asked again; nothing passes the gate without it
		}
	}
}

// watchChanges ends the step as soon as another process has decided about the task.
func (r *Runner) watchChanges(ctx context.Context, t Task, cut context.CancelCauseFunc) {
	for seen := t; ; {
		now, err := r.o.Ledger.Await(ctx, seen)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if poll.Sleep(ctx, time.Second) != nil {
				return
			}
			continue
		case now.Fence != t.Fence || now.State.Final():
			cut(ErrNotOwner)
			return
		}
		seen = now
	}
}

// decidedElsewhere reports whether a step's error is not for this process to handle: the
// task has another owner or was stopped, or the process itself is to end.
func decidedElsewhere(ctx context.Context, err error) bool {
	_, unwritten := errors.AsType[unwrittenStopError](err)
	return errors.Is(err, ErrNotOwner) || errors.Is(err, ErrStopped) || errors.Is(err, ErrFinal) || unwritten || ctx.Err() != nil
}

func (t *Task) deadlineLimit() []timeLimit {
	if t.DeadlineAt.IsZero() {
		return nil
	}
	return []timeLimit{{ReasonDeadline, t.DeadlineAt.Sub(t.ReadAt)}}
}

// attemptLimits are the limits of the open attempt, with those of its program if program.
func (t *Task) attemptLimits(program bool) []timeLimit {
	limits := t.deadlineLimit()
	a := t.Last()
	if a == nil || a.Retry != nil {
		return limits
	}
	add := func(why Reason, since time.Time, length time.Duration) {
		if length > 0 && !since.IsZero() {
			limits = append(limits, timeLimit{why, since.Add(length).Sub(t.ReadAt)})
		}
	}
	add(ReasonAttempt, a.IntentAt, t.Spec.Limits.Attempt)
	if program {
		add(ReasonCommand, a.StartedAt, t.Spec.Limits.Command)
	}
	return limits
}

// background is a function that runs beside a wait.
type background struct {
	over chan struct{}
	cut  context.CancelFunc
}

func startBackground(ctx context.Context, do func(context.Context)) background {
	ctx, cut := context.WithCancel(ctx)
	b := background{over: make(chan struct{}), cut: cut}
	go func() {
		defer close(b.over)
		do(ctx)
	}()
	return b
}

// waitFor gives it some time to end by itself, and reports whether it did.
func (b background) waitFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-b.over:
		return true
	case <-time.After(d):
	case <-ctx.Done():
	}
	return false
}

func (b background) isOver() bool {
	select {
	case <-b.over:
		return true
	default:
		return false
	}
}

func (b background) cancelAndWait() {
	b.cut()
	<-b.over
}
