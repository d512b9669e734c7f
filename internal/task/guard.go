package task

import (
	"context"
	"errors"
	"sync"
	"time"

	"sbx/internal/fault"
)

// expiredError ends a step because one of the task's limits was reached.
type expiredError struct{ why Reason }

func (e expiredError) Error() string { return "its " + string(e.why) + " limit was reached" }

// timeLimit is one of the times that a step may take.
type timeLimit struct {
	why  Reason
	left time.Duration
}

// guarded runs one step for as long as the task is this process's: it renews the
// lease, looks for stops of others, hears the operator's own, and keeps the limits.
// Whatever of that comes first ends the step's context and is the error.
func (r *Runner) guarded(ctx context.Context, t Task, limits []timeLimit, do func(context.Context) error) error {
	return r.guard(ctx, t, limits, 0, do)
}

// errStoreUnreachable ends a step that may not go on while nobody could tell this process to
// stop.
var errStoreUnreachable = fault.New(fault.KindUnavailable, "the store could not be asked for longer than a lease")

// guard is guarded. blind is for how long the step may go on without a word from the
// store; 0 = for ever.
func (r *Runner) guard(ctx context.Context, t Task, limits []timeLimit, blind time.Duration, do func(context.Context) error) error {
	ctx, cut := context.WithCancelCause(ctx)
	var guards sync.WaitGroup
	guards.Go(func() { r.keepLease(ctx, t, limits, blind, cut) })
	if !t.Spec.NoPolling {
		guards.Go(func() { r.watchChanges(ctx, t, cut) })
	}
	err := do(ctx)
	cause := context.Cause(ctx)
	cut(nil)
	guards.Wait()
	if err != nil && cause != nil {
		return cause // what was done in spite of it was done: the next change says whether it counts
	}
	return err
}

// keepLease renews the lease, hears the operator and keeps the limits.
func (r *Runner) keepLease(ctx context.Context, t Task, limits []timeLimit, blind time.Duration, cut context.CancelCauseFunc) {
	heard := time.Now()
	renew := time.NewTicker(RenewEvery)
	defer renew.Stop()
	first, over := earliestLimit(limits)
	defer over.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.stop:
			r.requestOwnStop(ctx, t, cut)
			return
		case <-over.C:
			cut(expiredError{first})
			return
		case <-renew.C:
			_, err := r.o.Ledger.Change(ctx, t.ID, func(t2 *Task) error { return t2.Renew(t.Fence) })
			if errors.Is(err, ErrNotOwner) || errors.Is(err, ErrFinal) {
				cut(ErrNotOwner)
				return
			} // a store that is away for a moment is asked again; nothing passes the gate without it
			if err == nil {
				heard = time.Now()
			}
			if blind > 0 && time.Since(heard) > blind {
				cut(errStoreUnreachable)
				return
			}
		}
	}
}

// earliestLimit is the limit that is reached first, and a timer for it.
func earliestLimit(limits []timeLimit) (Reason, *time.Timer) {
	why, least := ReasonNone, time.Duration(-1)
	for _, l := range limits {
		if least < 0 || l.left < least {
			why, least = l.why, max(0, l.left)
		}
	}
	if least < 0 {
		timer := time.NewTimer(time.Hour)
		timer.Stop()
		return why, timer
	}
	return why, time.NewTimer(least)
}

// requestOwnStop asks for the stop that the operator of this very process wants.
func (r *Runner) requestOwnStop(ctx context.Context, t Task, cut context.CancelCauseFunc) {
	_, err := r.changeTask(ctx, t.ID, func(t2 *Task) error { return t2.Stop(r.o.Owner.Who) })
	if err == nil || errors.Is(err, ErrFinal) {
		cut(ErrStopped)
		return
	}
	cut(unwrittenStopError{err})
}

// unwrittenStopError ends a step because the operator's stop could not be written: that
// says nothing of the step.
type unwrittenStopError struct{ error }

func (u unwrittenStopError) Unwrap() error { return u.error }

// decidedElsewhere says of a step's error that the step is not this process's to judge: the
// task is somebody else's, or a stop's, or the process itself is asked to end.
func decidedElsewhere(ctx context.Context, err error) bool {
	var unheard unwrittenStopError
	return errors.Is(err, ErrNotOwner) || errors.Is(err, ErrStopped) || errors.Is(err, ErrFinal) || errors.As(err, &unheard) || ctx.Err() != nil
}

// watchChanges ends the step as soon as somebody else has decided about the task.
func (r *Runner) watchChanges(ctx context.Context, t Task, cut context.CancelCauseFunc) {
	for seen := t; ; {
		now, err := r.o.Ledger.Await(ctx, seen)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if !pause(ctx, time.Second) {
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

// deadlineLimit is the limit that holds for all attempts together.
func (t *Task) deadlineLimit() []timeLimit {
	if t.DeadlineAt.IsZero() {
		return nil
	}
	return []timeLimit{{ReasonDeadline, timeLeft(t.DeadlineAt, t.ReadAt)}}
}

// attemptLimits are those that hold for an attempt, and with a program for that too.
func (t *Task) attemptLimits(program bool) []timeLimit {
	limits := t.deadlineLimit()
	a := t.Last()
	if a == nil || a.Retry != nil {
		return limits
	}
	add := func(why Reason, since time.Time, length time.Duration) {
		if length > 0 && !since.IsZero() {
			limits = append(limits, timeLimit{why, timeLeft(since.Add(length), t.ReadAt)})
		}
	}
	add(ReasonAttempt, a.IntentAt, t.Spec.Limits.Attempt)
	if program {
		add(ReasonCommand, a.StartedAt, t.Spec.Limits.Command)
	}
	return limits
}
