package task

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

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
	r.runs(ctx)
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
		spec := t.box(a, r.environment(t))
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
		if r.lostIt(now) && now.Last().N != a.N { // another works at the next attempt: this one is for its maker to end
			return r.endAttempt(ctx, now, a.N)
		}
		return now, nil
	}
	a.Sandbox = id
	for began := time.Now(); time.Since(began) < EndPatience; {
		switch r.endOne(ctx, t.ID, a).Outcome {
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
	if errors.Is(err, providers.ErrNothingMade) {
		return true
	}
	switch fault.KindOf(err) {
	case fault.KindUsage, fault.KindAuth, fault.KindUnsupported, fault.KindRefused, fault.KindCommandNotFound, fault.KindNotExecutable, fault.KindNotFound:
		return true
	default:
		return false
	}
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
	if errors.Is(err, providers.ErrSandboxLimit) { // another attempt may find a place
		e.Class = sandbox.ClassInfra
		return e
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
	case fault.KindAuth:
		e.Class = sandbox.ClassAuth
	case fault.KindUsage, fault.KindUnsupported, fault.KindRefused, fault.KindNotFound:
		e.Class = sandbox.ClassUsage
	default: // something of the launcher's own
	}
	return e
}
