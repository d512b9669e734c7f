package task

import (
	"context"

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
	return now, err
}

// completed decides a task whose program did its work and that publishes nothing
// more.
func (t *Task) completed(fence int64) error {
	if err := t.Conclude(fence, Completed, ReasonNone, ""); err != nil {
		return err
	}
	if t.Spec.KeepAlive > 0 {
		return t.Keep(fence, t.ReadAt.Add(t.Spec.KeepAlive))
	}
	return nil
}

// after decides what comes after an attempt that has ended.
func (r *Runner) after(ctx context.Context, t Task) (Task, error) {
	a := t.Last()
	if r.done != nil {
		r.done(ctx, a.Exit.Class)
		r.done = nil
	}
	if a.Exit.Class == sandbox.ClassOK {
		if t.Spec.Publishes() {
			return r.publish(ctx, t)
		}
		return r.change(ctx, t.ID, func(n *Task) error { return n.completed(t.Fence) })
	}
	next := t.Next(r.roll())
	if next.Again && len(t.Spec.EnvNames) > 0 && r.env == nil {
		next.Again, next.Why = false, "who ran it is gone, and the values of its environment with them: launch it again"
	}
	if !next.Again {
		return r.change(ctx, t.ID, func(n *Task) error { return n.Conclude(t.Fence, n.verdict(), n.Reason, next.Why) })
	}
	if a.GoneAt.IsZero() {
		now := t
		err := r.guarded(ctx, t, nil, func(ctx context.Context) (err error) {
			now, err = r.endAttempt(ctx, t, a.N)
			return err
		})
		if err != nil {
			return now, err
		}
		t = now
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
	e := Ended{Exit: sandbox.Exit{
		Class: sandbox.ClassInfra, Cause: sandbox.CauseSupervisorLost, Confidence: sandbox.Certain,
		Evidence: []sandbox.Evidence{{What: "create", Value: "who asked for it died before the answer was written down", Source: "sbx", At: t.ReadAt}},
	}}
	return r.change(ctx, t.ID, func(n *Task) error { return n.End(t.Fence, e) })
}
