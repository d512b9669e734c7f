package task

import (
	"context"
	"errors"
	"time"

	"sbx/internal/sandbox"
)

// conclude notes an attempt's end and, where nothing is left to be done with it,
// the task's, in one change.
func (r *Runner) conclude(ctx context.Context, t Task, e Ended) (Task, error) {
	ok := e.Exit.Class == sandbox.ClassOK
	now, err := r.change(ctx, t.ID, func(n *Task) error {
		if err := n.End(t.Fence, e); err != nil {
			return err
		}
		if ok && !n.Spec.Publishes() {
			return n.completed(t.Fence)
		}
		return nil
	})
	if err == nil {
		r.tell(ctx, e.Exit.Class)
	}
	return now, err
}

// tell tells the breaker how the attempt that it let in has ended, once.
func (r *Runner) tell(ctx context.Context, class sandbox.Class) {
	if r.leaves.Done != nil {
		r.leaves.Done(ctx, class)
		r.leaves = Leave{}
	}
}

// runs tells the breaker that a program runs.
func (r *Runner) runs(ctx context.Context) {
	if r.leaves.Runs != nil {
		r.leaves.Runs(ctx)
	}
}

// completed decides a task whose program did its work and that publishes nothing
// more.
func (t *Task) completed(fence int64) error {
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

// after decides what comes after an attempt that has ended.
func (r *Runner) after(ctx context.Context, t Task) (Task, error) {
	a := t.Last()
	if a.neverEntered() {
		r.tell(ctx, "") // that what waited is gone says nothing of what is made now
	}
	r.tell(ctx, a.Exit.Class)
	if a.Exit.Class == sandbox.ClassOK {
		if t.Spec.Publishes() {
			return r.publish(ctx, t)
		}
		return r.change(ctx, t.ID, func(n *Task) error { return n.completed(t.Fence) })
	}
	next := t.Next(r.roll())
	if next.Again && len(t.Spec.EnvNames) > 0 && r.env == nil && t.Key == "" { // who knows the key can come again, with the values
		next.Again, next.Why = false, "who ran it is gone, and the values of its environment with them: launch it again"
		t.Reason = ReasonLost
	}
	if !next.Again {
		return r.change(ctx, t.ID, func(n *Task) error { return n.Conclude(t.Fence, n.verdict(), t.Reason, next.Why) })
	}
	if a.GoneAt.IsZero() {
		if now, err := r.clear(ctx, t, *a); err != nil {
			return now, err
		} else if now.Phase != Working {
			return now, nil
		}
	}
	return r.change(ctx, t.ID, func(n *Task) error { return n.Again(t.Fence, next) })
}

// verdict is what a task becomes whose last attempt did not succeed.
func (t *Task) verdict() State {
	if a := t.Last(); a != nil && a.Expired != ReasonNone {
		return TimedOut
	}
	return Failed
}

// expire ends an attempt whose limit was reached: first it is written down, so that
// nothing of it can pass the gate, then it is killed.
func (r *Runner) expire(ctx context.Context, t Task, why Reason, e Ended) (Task, error) {
	return r.change(ctx, t.ID, func(n *Task) error {
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

// expired goes on with an attempt that a limit has ended.
func (r *Runner) expired(ctx context.Context, t Task) (Task, error) {
	if t.Last().Exit == nil {
		return r.change(ctx, t.ID, func(n *Task) error {
			return n.End(t.Fence, Ended{Exit: timedOut(n.Last().Expired, n.ReadAt)})
		})
	}
	return r.after(ctx, t)
}

// lost goes on with an attempt whose maker died between the intent and the answer.
func (r *Runner) lost(ctx context.Context, t Task) (Task, error) {
	if a := t.Last(); a.CutAt.IsZero() && r.returned[a.N].IsZero() {
		r.returned[a.N] = time.Now() // it was this process's own, and is asked for no more
	}
	e := Ended{Exit: sandbox.Exit{
		Class: sandbox.ClassInfra, Cause: sandbox.CauseSupervisorLost, Confidence: sandbox.Certain,
		Evidence: []sandbox.Evidence{{What: "create", Value: "who asked for it died before the answer was written down", Source: "sbx", At: t.ReadAt}},
	}}
	return r.change(ctx, t.ID, func(n *Task) error { return n.End(t.Fence, e) })
}

// clear ends what an attempt has made, so that the next one may begin. Where that is
// not seen in time, there is no next one.
func (r *Runner) clear(ctx context.Context, t Task, a Attempt) (Task, error) {
	limits := append(t.deadline(), limit{ReasonAttempt, EndPatience})
	err := r.guarded(ctx, t, limits, func(ctx context.Context) error {
		for {
			_, err := r.endAttempt(ctx, t, a.N)
			if err == nil || !errors.Is(err, ErrUnverified) {
				return err
			}
			r.say(err.Error())
			if !pause(ctx, clearLook) {
				return ctx.Err()
			}
		}
	})
	if _, late := errors.AsType[expiredError](err); !late {
		return t, err
	}
	return r.change(ctx, t.ID, func(n *Task) error {
		return n.Conclude(t.Fence, n.verdict(), n.Reason, "what its last attempt made was not seen to end in time for another")
	})
}

// clearLook is the pause between two tries to end what is in the way of an attempt.
const clearLook = 5 * time.Second

// tidy ends what turned up of attempts that were taken for gone.
func (r *Runner) tidy(ctx context.Context, t Task) (Task, error) {
	for _, a := range t.Attempts {
		if a.GoneAt.IsZero() {
			return r.clear(ctx, t, a)
		}
	}
	return t, nil
}

// giveUp decides a task that nobody has gone on with in its time.
func (r *Runner) giveUp(ctx context.Context, t Task) (Task, error) {
	return r.change(ctx, t.ID, func(n *Task) error {
		if n.Spec.Limits.Deadline > 0 {
			return n.Conclude(t.Fence, TimedOut, ReasonDeadline, "who ran it is gone, and its deadline was reached")
		}
		return n.Conclude(t.Fence, Failed, ReasonLost, "who ran it is gone, and nobody went on with it")
	})
}
