package task

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// createSandbox makes the attempt's sandbox, once. What it has made is known to this
// process alone until it is written down; who finds the intent without it looks for
// the nonce.
func (r *Runner) createSandbox(ctx context.Context, t Task) (Task, error) {
	a := *t.Last()
	made, err := r.requestSandbox(ctx, t, a)
	r.reachPoint("created")
	if made.ID == "" || err != nil {
		return r.recordFailedCreate(ctx, t, a, made, err)
	}
	now, err := r.changeTask(ctx, t.ID, func(n *Task) error { return n.Created(t.Fence, made) })
	r.reachPoint("saved")
	r.reportRunning(ctx)
	if errors.Is(err, ErrNotOwner) || errors.Is(err, ErrFinal) {
		return r.recordLateSandbox(ctx, t, a, made.ID)
	}
	return now, err
}

// requestSandbox asks for the attempt's sandbox. When the step is over before the answer is
// there, it is waited for CreateGrace longer: the answer is the only sure word on
// what was made, without it there is but a long look at the listing. A process that
// cannot hear the store asks for nothing longer than a lease, so that others know
// when it has given up.
func (r *Runner) requestSandbox(ctx context.Context, t Task, a Attempt) (sandbox.Sandbox, error) {
	asked, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	var made sandbox.Sandbox
	var failed error
	request := r.startBackground(asked, func(ctx context.Context) {
		spec := t.sandboxSpec(a, r.programEnvironment(t))
		spec.Linger = t.Spec.NeedsSandboxAfterEnd()
		made, failed = r.o.Sandboxes.Create(ctx, a.Provider, spec)
	})
	err := r.guard(ctx, t, t.attemptLimits(false), LeaseFor, func(ctx context.Context) error {
		select {
		case <-request.over:
			return failed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	request.waitFor(ctx, CreateGrace)
	giveUp()
	<-request.over
	r.createEnded[a.N] = time.Now()
	if err == nil {
		err = failed
	}
	return made, err
}

// recordLateSandbox writes down a sandbox that was made for a task which somebody has decided
// about meanwhile, so that it is ended with the rest. Where even that cannot be
// written, it is ended by the one who made it.
func (r *Runner) recordLateSandbox(ctx context.Context, t Task, a Attempt, id string) (Task, error) {
	now, err := r.changeTask(ctx, t.ID, func(task *Task) error { return task.Found(a.N, id) })
	if err == nil {
		if r.ownedByOther(now) && now.Last().N != a.N { // another works at the next attempt: this one is for its maker to end
			return r.endAttempt(ctx, now, a.N)
		}
		return now, nil
	}
	a.Sandbox = id
	for began := time.Now(); time.Since(began) < EndPatience; {
		switch r.endSandbox(ctx, t.ID, a).Outcome {
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

// recordFailedCreate judges a create that gave no sandbox, or one that comes too late.
func (r *Runner) recordFailedCreate(ctx context.Context, t Task, a Attempt, made sandbox.Sandbox, err error) (Task, error) {
	if made.ID != "" {
		if now, err := r.recordLateSandbox(ctx, t, a, made.ID); err != nil {
			return now, err
		}
	}
	var expired expiredError
	switch {
	case errors.As(err, &expired):
		return r.changeTask(ctx, t.ID, func(n *Task) error { return n.Expire(t.Fence, expired.why) })
	case decidedElsewhere(ctx, err):
		return t, err
	}
	e := Ended{Exit: exitWithoutRun(err), Nothing: made.ID == "" && provesNothingMade(err)}
	return r.changeTask(ctx, t.ID, func(n *Task) error {
		if err := n.End(t.Fence, e); err != nil {
			return err
		}
		n.Last().Fault = string(fault.KindOf(err))
		return nil
	})
}

// provesNothingMade says of a failed create that it has made nothing, for sure.
func provesNothingMade(err error) bool {
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

// exitWithoutRun is the exit of a program that was never seen to run.
func exitWithoutRun(err error) sandbox.Exit {
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
