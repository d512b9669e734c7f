package task

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// How often what a task waits for is looked at again.
const (
	budgetLook = 200 * time.Millisecond
	roomLook   = time.Second
	breakLook  = 5 * time.Second
)

// begin waits until the next attempt may be made, and makes it.
func (r *Runner) begin(ctx context.Context, t Task) (Task, error) {
	place := t.Place()
	attempt := Attempt{Provider: place, Nonce: r.nonce(), MemoryMB: t.memoryMB()}
	if t.Spec.Sandbox.ID != "" && len(t.Attempts) == 0 {
		attempt.Provider, attempt.Sandbox, attempt.Reused, attempt.Settled = t.Spec.Sandbox.Provider, t.Spec.Sandbox.ID, true, true
	}
	var done func(context.Context, sandbox.Class)
	err := r.guarded(ctx, t, t.limits(false), func(ctx context.Context) error {
		if wait := left(t.NextAt, t.ReadAt); wait > 0 && !pause(ctx, wait) {
			return ctx.Err()
		}
		var err error
		if len(t.Attempts) == 0 && t.Spec.Publishes() {
			if _, err := r.o.Publisher.Prepare(ctx, t); err != nil {
				return unpublishable{err}
			}
		}
		if done, err = r.enter(ctx, t, attempt.Provider, attempt.MemoryMB); err != nil {
			return err
		}
		t, err = r.assign(ctx, t, attempt)
		return err
	})
	if err != nil {
		if done != nil {
			done(context.WithoutCancel(ctx), "")
		}
		return r.notBegun(ctx, t, err)
	}
	r.changed(t)
	r.at("intent")
	r.done = done
	if attempt.Reused {
		return r.enterKept(ctx, t)
	}
	return r.create(ctx, t)
}

// unpublishable says that there is no use in beginning: what comes of it could not be
// published.
type unpublishable struct{ error }

func (u unpublishable) Unwrap() error { return u.error }

// notBegun judges why no attempt could be made.
func (r *Runner) notBegun(ctx context.Context, t Task, err error) (Task, error) {
	var expired expiredError
	var unfit unpublishable
	switch {
	case errors.As(err, &unfit) && ctx.Err() == nil:
		return r.unpublished(ctx, t, unfit.error)
	case errors.As(err, &expired), errors.Is(err, ErrLate):
		return r.change(ctx, t.ID, func(n *Task) error {
			return n.Conclude(t.Fence, TimedOut, ReasonDeadline, "its deadline was reached before another attempt could begin")
		})
	case errors.Is(err, ErrSpent):
		return r.change(ctx, t.ID, func(n *Task) error {
			return n.Conclude(t.Fence, Failed, ReasonNone, "all attempts are used up")
		})
	}
	return t, err
}

// enter waits for the breaker of the place and for memory of the machine.
func (r *Runner) enter(ctx context.Context, t Task, place string, mb int64) (func(context.Context, sandbox.Class), error) {
	for {
		why, look := "", roomLook
		if r.o.Room != nil {
			if err := r.o.Room.Free(ctx, place, mb); err != nil {
				why = "memory: " + err.Error()
			}
		}
		var done func(context.Context, sandbox.Class)
		if why == "" && r.o.Breaker != nil {
			var err error
			if done, err = r.o.Breaker.Allow(ctx, place); err != nil {
				why, look = "breaker: "+err.Error(), breakLook
			}
		}
		if why == "" {
			return done, nil
		}
		if err := r.waits(ctx, t, why); err != nil {
			return nil, err
		}
		if !pause(ctx, look) {
			return nil, ctx.Err()
		}
	}
}

// waits shows why a task has not begun.
func (r *Runner) waits(ctx context.Context, t Task, why string) error {
	now, err := r.change(ctx, t.ID, func(n *Task) error {
		if err := n.works(t.Fence); err != nil {
			return err
		}
		return n.Wait(why)
	})
	if err == nil {
		r.changed(now)
	}
	return err
}

// assign takes the task, and of its budget what the attempt needs.
func (r *Runner) assign(ctx context.Context, t Task, a Attempt) (Task, error) {
	for {
		now, err := r.change(ctx, t.ID, func(n *Task) error {
			if err := n.works(t.Fence); err != nil {
				return err
			}
			return n.Assign(r.o.Owner, a)
		})
		if !errors.Is(err, store.ErrBudget) {
			return now, err
		}
		if err := r.waits(ctx, t, "memory_budget"); err != nil {
			return t, err
		}
		if !pause(ctx, budgetLook) {
			return t, ctx.Err()
		}
	}
}

// create makes the attempt's sandbox, once. What it has made is known to this
// process alone until it is written down; who finds the intent without it looks for
// the nonce.
func (r *Runner) create(ctx context.Context, t Task) (Task, error) {
	a := *t.Last()
	var made sandbox.Sandbox
	err := r.guarded(ctx, t, t.limits(false), func(ctx context.Context) (err error) {
		spec := t.box(a, r.env)
		spec.Linger = t.Spec.Lingers()
		made, err = r.o.Sandboxes.Create(ctx, a.Provider, spec)
		return err
	})
	r.returned[a.N] = true
	r.at("created")
	if made.ID != "" && err == nil {
		now, err := r.change(ctx, t.ID, func(n *Task) error { return n.Created(t.Fence, made) })
		r.at("saved")
		if errors.Is(err, ErrMoved) || errors.Is(err, ErrOver) {
			return r.found(ctx, t, a.N, made.ID)
		}
		return now, err
	}
	return r.notCreated(ctx, t, a, made, err)
}

// found writes down a sandbox that was made for a task which somebody has decided
// about meanwhile, so that it is ended with the rest. Where even that cannot be
// written, it is ended at once.
func (r *Runner) found(ctx context.Context, t Task, n int, id string) (Task, error) {
	now, err := r.change(ctx, t.ID, func(task *Task) error { return task.Found(n, id) })
	if err == nil {
		return now, nil
	}
	a := t.Attempts[n-1]
	a.Sandbox = id
	r.endOne(ctx, a)
	return now, err
}

// notCreated judges a create that gave no sandbox.
func (r *Runner) notCreated(ctx context.Context, t Task, a Attempt, made sandbox.Sandbox, err error) (Task, error) {
	if made.ID != "" { // it was made, and then something went wrong
		if now, err := r.change(ctx, t.ID, func(n *Task) error { return n.Found(a.N, made.ID) }); err == nil {
			t = now
		}
	}
	var expired expiredError
	switch {
	case errors.As(err, &expired):
		return r.change(ctx, t.ID, func(n *Task) error { return n.Expire(t.Fence, expired.why) })
	case errors.Is(err, ErrMoved), errors.Is(err, ErrStopped), errors.Is(err, ErrOver), ctx.Err() != nil:
		return t, err
	}
	e := Ended{Exit: notRun(err), Nothing: made.ID == "" && definite(err)}
	return r.change(ctx, t.ID, func(n *Task) error {
		n.Last().Fault = string(fault.KindOf(err))
		return n.End(t.Fence, e)
	})
}

// definite says of a failed create that it has made nothing, for sure.
func definite(err error) bool {
	switch fault.KindOf(err) {
	case fault.KindUsage, fault.KindAuth, fault.KindUnsupported, fault.KindRefused, fault.KindCommandNotFound, fault.KindNotExecutable, fault.KindNotFound:
		return true
	}
	return false
}

// notRun is the exit of a program that was never seen to run.
func notRun(err error) sandbox.Exit {
	e := sandbox.Exit{
		Class: sandbox.ClassLauncher, Cause: sandbox.CauseUnknown, Confidence: sandbox.Certain,
		Evidence: []sandbox.Evidence{{What: "create", Value: err.Error(), Source: "sbx"}},
	}
	switch fault.KindOf(err) {
	case fault.KindUnavailable, fault.KindTimeout, fault.KindPartial:
		e.Class = sandbox.ClassInfra
	case fault.KindCommandNotFound:
		code := 127
		e.Class, e.Code = sandbox.ClassEnvironment, &code
	case fault.KindNotExecutable:
		code := 126
		e.Class, e.Code = sandbox.ClassEnvironment, &code
	case fault.KindUsage, fault.KindAuth, fault.KindUnsupported, fault.KindRefused, fault.KindNotFound:
		e.Class = sandbox.ClassUsage
	}
	return e
}
