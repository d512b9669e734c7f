package task

import (
	"context"
	"errors"
	"time"

	"sbx/internal/sandbox"
)

// recordExit notes an attempt's end and, where nothing is left to be done with it,
// the task's, in one change.
func (r *Runner) recordExit(ctx context.Context, t Task, e Ended) (Task, error) {
	ok := e.Exit.Class == sandbox.ClassOK
	now, err := r.changeTask(ctx, t.ID, func(n *Task) error {
		if err := n.End(t.Fence, e); err != nil {
			return err
		}
		if ok && !n.Spec.Publishes() {
			return n.concludeCompleted(t.Fence)
		}
		return nil
	})
	if err == nil {
		r.releasePermit(ctx, e.Exit.Class)
	}
	return now, err
}

// releasePermit tells the breaker how the attempt that it let in has ended, once.
func (r *Runner) releasePermit(ctx context.Context, class sandbox.Class) {
	if r.permit.Done != nil {
		r.permit.Done(ctx, class)
		r.permit = Permit{}
	}
}

// reportRunning tells the breaker that a program runs.
func (r *Runner) reportRunning(ctx context.Context) {
	if r.permit.Started != nil {
		r.permit.Started(ctx)
	}
}

// concludeCompleted decides a task whose program did its work and that publishes nothing
// more.
func (t *Task) concludeCompleted(fence int64) error {
	if err := t.Conclude(fence, Completed, ReasonNone, ""); err != nil {
		return err
	}
	switch {
	case t.Spec.Warm: // its life counts, which began before
		return t.Keep(fence, t.Last().IntentAt.Add(t.Spec.KeepAlive))
	case t.Spec.KeepAlive > 0:
		return t.Keep(fence, t.ReadAt.Add(t.Spec.KeepAlive))
	}
	return nil
}

// decideNext decides what comes after an attempt that has ended.
func (r *Runner) decideNext(ctx context.Context, t Task) (Task, error) {
	a := t.Last()
	if a.neverEntered() {
		r.releasePermit(ctx, "") // that what waited is gone says nothing of what is made now
	}
	r.releasePermit(ctx, a.Exit.Class)
	if a.Exit.Class == sandbox.ClassOK {
		if t.Spec.Publishes() {
			return r.publishWork(ctx, t)
		}
		return r.changeTask(ctx, t.ID, func(n *Task) error { return n.concludeCompleted(t.Fence) })
	}
	next := t.Next(r.roll())
	if next.Again && len(t.Spec.EnvNames) > 0 && r.env == nil && t.Key == "" { // who knows the key can come again, with the values
		next.Again, next.Why = false, "who ran it is gone, and the values of its environment with them: launch it again"
		t.Reason = ReasonLost
	}
	if !next.Again {
		return r.changeTask(ctx, t.ID, func(n *Task) error { return n.Conclude(t.Fence, n.failureVerdict(), t.Reason, next.Why) })
	}
	if a.GoneAt.IsZero() {
		if now, err := r.clearAttempt(ctx, t, *a); err != nil {
			return now, err
		} else if now.Phase != Working {
			return now, nil
		}
	}
	return r.changeTask(ctx, t.ID, func(n *Task) error { return n.ScheduleRetry(t.Fence, next) })
}

// failureVerdict is what a task becomes whose last attempt did not succeed.
func (t *Task) failureVerdict() State {
	if a := t.Last(); a != nil && a.Expired != ReasonNone {
		return TimedOut
	}
	return Failed
}

// expireAttempt ends an attempt whose limit was reached: first it is written down, so that
// nothing of it can pass the gate, then it is killed.
func (r *Runner) expireAttempt(ctx context.Context, t Task, why Reason, e Ended) (Task, error) {
	return r.changeTask(ctx, t.ID, func(n *Task) error {
		if err := n.Expire(t.Fence, why); err != nil {
			return err
		}
		if err := n.End(n.Fence, e); err != nil {
			return err
		}
		if next := n.Next(0); !next.Again {
			return n.Conclude(n.Fence, TimedOut, why, next.Why)
		}
		return nil
	})
}

// recordTimeout goes on with an attempt that a limit has ended.
func (r *Runner) recordTimeout(ctx context.Context, t Task) (Task, error) {
	if t.Last().Exit == nil {
		return r.changeTask(ctx, t.ID, func(n *Task) error {
			return n.End(t.Fence, Ended{Exit: timeoutExit(n.Last().Expired, n.ReadAt)})
		})
	}
	return r.decideNext(ctx, t)
}

// recordLostCreate goes on with an attempt whose maker died between the intent and the answer.
func (r *Runner) recordLostCreate(ctx context.Context, t Task) (Task, error) {
	if a := t.Last(); a.CutAt.IsZero() && r.createEnded[a.N].IsZero() {
		r.createEnded[a.N] = time.Now() // it was this process's own, and is asked for no more
	}
	e := Ended{Exit: sandbox.Exit{
		Class: sandbox.ClassInfra, Cause: sandbox.CauseSupervisorLost, Confidence: sandbox.Certain,
		Evidence: []sandbox.Evidence{{What: "create", Value: "who asked for it died before the answer was written down", Source: "sbx", At: t.ReadAt}},
	}}
	return r.changeTask(ctx, t.ID, func(n *Task) error { return n.End(t.Fence, e) })
}

// clearAttempt ends what an attempt has made, so that the next one may begin. Where that is
// not seen in time, there is no next one.
func (r *Runner) clearAttempt(ctx context.Context, t Task, a Attempt) (Task, error) {
	limits := append(t.deadlineLimit(), timeLimit{ReasonAttempt, EndPatience})
	err := r.guarded(ctx, t, limits, func(ctx context.Context) error {
		for {
			_, err := r.endAttempt(ctx, t, a.N)
			if err == nil || !errors.Is(err, ErrUnverified) {
				return err
			}
			r.sendMessage(err.Error())
			if !pause(ctx, clearInterval) {
				return ctx.Err()
			}
		}
	})
	if _, late := errors.AsType[expiredError](err); !late {
		return t, err
	}
	return r.changeTask(ctx, t.ID, func(n *Task) error {
		return n.Conclude(t.Fence, n.failureVerdict(), n.Reason, "what its last attempt made was not seen to end in time for another")
	})
}

// clearInterval is the pause between two tries to end what is in the way of an attempt.
const clearInterval = 5 * time.Second

// endLeftovers ends what turned up of attempts that were taken for gone.
func (r *Runner) endLeftovers(ctx context.Context, t Task) (Task, error) {
	for _, a := range t.Attempts {
		if a.GoneAt.IsZero() {
			return r.clearAttempt(ctx, t, a)
		}
	}
	return t, nil
}

// concludeAbandoned decides a task that nobody has gone on with in its time.
func (r *Runner) concludeAbandoned(ctx context.Context, t Task) (Task, error) {
	return r.changeTask(ctx, t.ID, func(n *Task) error {
		if n.Spec.Limits.Deadline > 0 {
			return n.Conclude(t.Fence, TimedOut, ReasonDeadline, "who ran it is gone, and its deadline was reached")
		}
		return n.Conclude(t.Fence, Failed, ReasonLost, "who ran it is gone, and nobody went on with it")
	})
}
