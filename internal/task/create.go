package task

import (
	"context"
	"errors"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// createSandbox makes the attempt's sandbox, once. Until its id is written down only this
// process knows it; another process that finds the intent without an id searches for the
// nonce.
func (r *Runner) createSandbox(ctx context.Context, t Task) (Task, error) {
	a := *t.Last()
	made, err := r.requestSandbox(ctx, t, a)
	r.o.CrashPoint("created")
	if made.ID == "" || err != nil {
		return r.recordFailedCreate(ctx, t, a, made, err)
	}
	now, err := r.changeTask(ctx, t.ID, func(n *Task) error { return n.Created(t.Fence, made) })
	r.o.CrashPoint("saved")
	r.reportRunning(ctx)
	if errors.Is(err, ErrNotOwner) || errors.Is(err, ErrFinal) {
		return r.recordLateSandbox(ctx, t, a, made.ID)
	}
	return now, err
}

// requestSandbox asks the provider for the attempt's sandbox. When the step ends before
// the answer, the answer is awaited for CreateGrace longer: without it only a long search
// of the listing shows what was made. While the store cannot be reached, the request goes
// on for at most a lease, so that other processes know when it was given up.
func (r *Runner) requestSandbox(ctx context.Context, t Task, a Attempt) (sandbox.Sandbox, error) {
	asked, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	var made sandbox.Sandbox
	var failed error
	request := startBackground(asked, func(ctx context.Context) {
		spec := t.sandboxSpec(a, r.programEnvironment(t))
		spec.KeepAfterExit = t.Spec.NeedsSandboxAfterEnd()
		made, failed = r.o.Sandboxes.Create(ctx, a.Provider, spec)
	})
	err := r.runGuardedWithin(ctx, t, t.attemptLimits(false), LeaseFor, func(ctx context.Context) error {
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

// recordLateSandbox records a sandbox whose task was decided while it was being made, so
// that it is ended with the others. Where that cannot be written, this process ends it.
func (r *Runner) recordLateSandbox(ctx context.Context, t Task, a Attempt, id string) (Task, error) {
	now, err := r.changeTask(ctx, t.ID, func(task *Task) error { return task.Found(a.N, id) })
	if err == nil {
		if r.ownedByOther(now) && now.Last().N != a.N { // the new owner works at the next attempt: this sandbox is left to its maker
			return r.endAttempt(ctx, now, a.N)
		}
		return now, nil
	}
	a.Sandbox = id
	for began := time.Now(); time.Since(began) < EndPatience; {
		if seenGone(r.endSandbox(ctx, t, a)) || poll.Sleep(ctx, time.Second) != nil {
			break
		}
	}
	return now, err
}

// recordFailedCreate handles a create without a sandbox, or one that came too late.
func (r *Runner) recordFailedCreate(ctx context.Context, t Task, a Attempt, made sandbox.Sandbox, err error) (Task, error) {
	if made.ID != "" {
		if now, err := r.recordLateSandbox(ctx, t, a, made.ID); err != nil {
			return now, err
		}
	}
	switch expired, late := errors.AsType[expiredError](err); {
	case late:
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

// recordLostCreate ends an attempt whose maker died between the intent and the answer.
func (r *Runner) recordLostCreate(ctx context.Context, t Task) (Task, error) {
	if a := t.Last(); a.CutAt.IsZero() && r.createEnded[a.N].IsZero() {
		r.createEnded[a.N] = time.Now() // this process asked for it, and does so no more
	}
	e := Ended{Exit: sandbox.Exit{
		Class: sandbox.ClassInfra, Cause: sandbox.CauseSupervisorLost, Confidence: sandbox.Certain,
		Evidence: []sandbox.Evidence{{What: evidenceCreate, Value: "the process that requested it died before it recorded the answer", Source: "sbx", At: t.ReadAt}},
	}}
	return r.changeTask(ctx, t.ID, func(n *Task) error { return n.End(t.Fence, e) })
}

// provesNothingMade reports whether the error of a create proves that it made nothing.
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

// evidenceCreate is the answer to the request for a sandbox, where it has failed.
const evidenceCreate = "create"

// RefusedCreate says that there was no program to be called wrongly: the request for its sandbox was refused.
func (e *Exit) RefusedCreate() bool {
	return e.Class == sandbox.ClassUsage && slices.ContainsFunc(e.Evidence, func(e sandbox.Evidence) bool { return e.What == evidenceCreate })
}

// exitWithoutRun is the exit of a program that was never seen to run.
func exitWithoutRun(err error) sandbox.Exit {
	e := sandbox.Exit{Class: sandbox.ClassLauncher, Cause: sandbox.CauseUnknown, Confidence: sandbox.Certain}
	if err == nil {
		return e
	}
	e.Evidence = []sandbox.Evidence{{What: evidenceCreate, Value: err.Error(), Source: "sbx"}}
	switch {
	case errors.Is(err, providers.ErrSandboxLimit): // a later attempt may be admitted
		e.Class = sandbox.ClassInfra
		return e
	case errors.Is(err, providers.ErrNoWorkdir): // the next sandbox would not have it either
		e.Class = sandbox.ClassEnvironment
		return e
	}
	switch fault.KindOf(err) {
	case fault.KindUnavailable, fault.KindTimeout, fault.KindPartial:
		e.Class = sandbox.ClassInfra
	case fault.KindCommandNotFound:
		e.Class, e.Code = sandbox.ClassEnvironment, new(127)
	case fault.KindNotExecutable:
		e.Class, e.Code = sandbox.ClassEnvironment, new(126)
	case fault.KindAuth:
		e.Class = sandbox.ClassAuth
	case fault.KindUsage, fault.KindUnsupported, fault.KindRefused, fault.KindNotFound:
		e.Class = sandbox.ClassUsage
	default: // a fault of the launcher itself
	}
	return e
}
