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
	attempt := Attempt{Provider: t.Place(), Nonce: r.nonce(), MemoryMB: t.memoryMB()}
	recreated := t.Recreated
	var done func(context.Context, sandbox.Class)
	err := r.guarded(ctx, t, t.deadline(), func(ctx context.Context) (err error) {
		if wait := left(t.NextAt, t.ReadAt); wait > 0 && !pause(ctx, wait) {
			return ctx.Err()
		}
		if len(t.Attempts) == 0 && t.Spec.Publishes() {
			if _, err := r.o.Publisher.Prepare(ctx, t); err != nil {
				return unpublishable{err}
			}
		}
		if t.Spec.Sandbox.ID != "" && len(t.Attempts) == 0 {
			if attempt.Reused, err = r.claim(ctx, t.Spec.Sandbox); err != nil {
				return err
			}
			recreated = !attempt.Reused
		}
		if attempt.Reused {
			attempt.Provider, attempt.Sandbox, attempt.Settled = t.Spec.Sandbox.Provider, t.Spec.Sandbox.ID, true
		}
		done, err = r.enter(ctx, t, attempt.Provider, attempt.MemoryMB)
		return err
	})
	now := t
	if err == nil {
		now, err = r.assign(ctx, t, attempt, recreated)
	}
	if err != nil {
		if done != nil {
			done(context.WithoutCancel(ctx), "")
		}
		return r.notBegun(ctx, t, err)
	}
	r.changed(now)
	r.at("intent")
	r.done = done
	if attempt.Reused {
		return r.enterKept(ctx, now)
	}
	return r.create(ctx, now)
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
	case errors.As(err, &unfit) && !ceded(ctx, err):
		return r.unpublished(ctx, t, unfit.error)
	case errors.As(err, &expired), errors.Is(err, ErrLate):
		return r.change(ctx, t.ID, func(n *Task) error {
			return n.Conclude(t.Fence, TimedOut, ReasonDeadline, "its deadline was reached before another attempt could begin")
		})
	case errors.Is(err, errTooBig):
		return r.change(ctx, t.ID, func(n *Task) error { return n.Conclude(t.Fence, Failed, ReasonNone, err.Error()) })
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

// assign takes the task, and of its budget what the attempt needs. It is outside of
// the guards, which would take its own new fence for somebody else's.
func (r *Runner) assign(ctx context.Context, t Task, a Attempt, recreated bool) (Task, error) {
	for {
		now, err := r.change(ctx, t.ID, func(n *Task) error {
			if err := n.works(t.Fence); err != nil {
				return err
			}
			n.Recreated = recreated
			return n.Assign(r.o.Owner, a)
		})
		if !errors.Is(err, store.ErrBudget) {
			return now, err
		}
		if most := r.o.Ledger.LimitMB; max(a.MemoryMB, t.Spec.MemoryBytes/sandbox.MiB) > most {
			return t, fault.New(fault.KindRefused, "%w: it needs %d MB, and the budget of all is %d MB", errTooBig, a.MemoryMB, most).
				WithHint("give it less with --memory, or raise the budget")
		}
		err = r.guarded(ctx, t, t.deadline(), func(ctx context.Context) error {
			if err := r.waits(ctx, t, "memory_budget"); err != nil {
				return err
			}
			if !pause(ctx, budgetLook) {
				return ctx.Err()
			}
			return nil
		})
		if err != nil {
			return t, err
		}
	}
}

// errTooBig says that there is no use in waiting for memory.
var errTooBig = errors.New("it never fits into the memory budget")

// create makes the attempt's sandbox, once. What it has made is known to this
// process alone until it is written down; who finds the intent without it looks for
// the nonce.
func (r *Runner) create(ctx context.Context, t Task) (Task, error) {
	a := *t.Last()
	made, err := r.make(ctx, t, a)
	r.at("created")
	if made.ID == "" || err != nil {
		return r.notCreated(ctx, t, a, made, err)
	}
	now, err := r.change(ctx, t.ID, func(n *Task) error { return n.Created(t.Fence, made) })
	r.at("saved")
	if errors.Is(err, ErrMoved) || errors.Is(err, ErrOver) {
		return r.found(ctx, t, a, made.ID)
	}
	return now, err
}

// make asks for the attempt's sandbox. When the step is over before the answer is
// there, it is waited for CreateGrace longer: the answer is the only sure word on
// what was made, without it there is but a long look at the listing. A process that
// cannot hear the store asks for nothing longer than a lease, so that others know
// when it has given up.
func (r *Runner) make(ctx context.Context, t Task, a Attempt) (sandbox.Sandbox, error) {
	asked, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	var made sandbox.Sandbox
	var failed error
	request := r.alongside(asked, func(ctx context.Context) {
		spec := t.box(a, r.env)
		spec.Linger = t.Spec.Lingers()
		made, failed = r.o.Sandboxes.Create(ctx, a.Provider, spec)
	})
	err := r.guard(ctx, t, t.limits(false), LeaseFor, func(ctx context.Context) error {
		select {
		case <-request.over:
			return failed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	request.wait(ctx, CreateGrace)
	giveUp()
	<-request.over
	r.returned[a.N] = time.Now()
	if err == nil {
		err = failed
	}
	return made, err
}

// found writes down a sandbox that was made for a task which somebody has decided
// about meanwhile, so that it is ended with the rest. Where even that cannot be
// written, it is ended by the one who made it.
func (r *Runner) found(ctx context.Context, t Task, a Attempt, id string) (Task, error) {
	now, err := r.change(ctx, t.ID, func(task *Task) error { return task.Found(a.N, id) })
	if err == nil {
		return now, nil
	}
	a.Sandbox = id
	for began := time.Now(); time.Since(began) < EndPatience; {
		switch r.endOne(ctx, a).Outcome {
		case sandbox.OutcomeVerified, sandbox.OutcomeAlreadyGone:
			return now, err
		case sandbox.OutcomeAccepted, sandbox.OutcomeStuck, sandbox.OutcomeFailed, sandbox.OutcomeChanged,
			sandbox.OutcomeSkipped, sandbox.OutcomeNotAttempted:
		}
		if !pause(ctx, time.Second) {
			break
		}
	}
	return now, err
}

// notCreated judges a create that gave no sandbox, or one that comes too late.
func (r *Runner) notCreated(ctx context.Context, t Task, a Attempt, made sandbox.Sandbox, err error) (Task, error) {
	if made.ID != "" {
		if now, err := r.found(ctx, t, a, made.ID); err != nil {
			return now, err
		}
	}
	var expired expiredError
	switch {
	case errors.As(err, &expired):
		return r.change(ctx, t.ID, func(n *Task) error { return n.Expire(t.Fence, expired.why) })
	case ceded(ctx, err):
		return t, err
	}
	e := Ended{Exit: notRun(err), Nothing: made.ID == "" && definite(err)}
	return r.change(ctx, t.ID, func(n *Task) error {
		if err := n.End(t.Fence, e); err != nil {
			return err
		}
		n.Last().Fault = string(fault.KindOf(err))
		return nil
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
	}
	if err == nil {
		return e
	}
	e.Evidence = []sandbox.Evidence{{What: "create", Value: err.Error(), Source: "sbx"}}
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
