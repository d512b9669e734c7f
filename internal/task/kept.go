package task

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// sessionVariable names the agent's earlier session to a command that goes on in the
// same sandbox (S2-22).
const sessionVariable = "RESUME_SESSION_ID"

// errRecreate says that a kept sandbox is of no use any more.
var errRecreate = errors.New("the kept sandbox is gone")

// enterSandbox goes on in a sandbox that another task has kept: only when it answers.
// One that is gone is replaced by a new one, and the agent's session is not spoken
// of again; nothing is ever installed anew in an old one.
func (r *Runner) enterSandbox(ctx context.Context, t Task) (Task, error) {
	a := *t.Last()
	err := r.guarded(ctx, t, t.attemptLimits(false), func(ctx context.Context) error { return r.awaitHealthy(ctx, t, a) })
	var expired expiredError
	switch {
	case errors.As(err, &expired):
		return r.changeTask(ctx, t.ID, func(n *Task) error { return n.Expire(t.Fence, expired.why) })
	case decidedElsewhere(ctx, err):
		return t, err
	case err != nil:
		r.sendMessage("a new sandbox is made: " + err.Error())
		e := Ended{Exit: vanishedExit(err)}
		return r.changeTask(ctx, t.ID, func(n *Task) error {
			n.Recreated = n.Spec.Sandbox.ID != ""
			return n.End(t.Fence, e)
		})
	}
	r.enteredAttempt = a.N
	r.reportRunning(ctx)
	return r.changeTask(ctx, t.ID, func(n *Task) error {
		n.Resumed = n.Spec.Sandbox.ID != ""
		return n.Started(t.Fence)
	})
}

// chooseSandbox settles where an attempt begins that may go on in a sandbox which is there
// already: the one that the task was launched for, or one that was made ahead.
func (r *Runner) chooseSandbox(ctx context.Context, t Task, next *plannedAttempt) error {
	if len(t.Attempts) == 0 && t.Spec.Sandbox.ID != "" {
		mine, err := r.claimKept(ctx, t, t.Spec.Sandbox)
		if err != nil {
			return err
		}
		if next.recreated = !mine; mine {
			next.reuseSandbox(t.Spec.Sandbox)
		}
		return nil
	}
	last := t.Last()
	if next.MemoryMB != t.Spec.MemoryBytes/sandbox.MiB || last != nil && last.neverEntered() {
		return nil // after one that did not answer the task makes its own: they may all be of one kind
	}
	ref, some, err := r.o.Pool.takeReady(ctx, t, next.Provider)
	if some {
		next.reuseSandbox(ref)
	}
	return err
}

func (i *plannedAttempt) reuseSandbox(ref sandbox.Ref) {
	i.Provider, i.Sandbox, i.Reused, i.Settled = ref.Provider, ref.ID, true, true
}

// claimKept takes a kept sandbox for the task; false = it is somebody else's, or its time
// is over. What an attempt names is ended with it.
func (r *Runner) claimKept(ctx context.Context, t Task, ref sandbox.Ref) (bool, error) {
	if r.o.KeepList == nil {
		return true, nil
	}
	mine, err := retryUntilStored(ctx, func() (bool, error) { return r.o.KeepList.Claim(ctx, ref, t.ID) })
	if err == nil && !mine {
		r.sendMessage("a new sandbox is made: " + ref.String() + " was used, somebody else goes on in it, or its time is over")
	}
	return mine, err
}

// returnClaim puts a sandbox back onto the list that the task was given, and does not go
// into after all. Where that cannot be written, it is ended with the task.
func (r *Runner) returnClaim(ctx context.Context, t Task, next plannedAttempt) {
	if next.Reused && r.o.KeepList != nil {
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_ = r.o.KeepList.Return(last, sandbox.Ref{Provider: next.Provider, ID: next.Sandbox}, t.ID)
	}
}

// awaitHealthy asks a kept sandbox how it is, and waits while it is between two states.
func (r *Runner) awaitHealthy(ctx context.Context, t Task, a Attempt) error {
	if t.Spec.NoProbe {
		return nil
	}
	for {
		health, err := r.o.Sandboxes.Probe(ctx, a.Ref())
		switch kind := fault.KindOf(err); {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case kind == fault.KindGone, kind == fault.KindNotFound:
			return errors.Join(errRecreate, err)
		case kind == fault.KindUnsupported:
			return nil // it cannot be asked; the command will tell
		case err != nil && !fault.Retryable(err):
			return err
		case err == nil:
			switch health.Condition {
			case providers.ConditionHealthy, providers.ConditionResumable:
				return nil
			case providers.ConditionRecreate, providers.ConditionBroken:
				return fault.New(fault.KindGone, "%w: %s", errRecreate, health.Condition)
			case providers.ConditionUnknown, "":
				r.sendMessage("whether " + a.Ref().String() + " answers is not known")
				return nil
			case providers.ConditionWait:
			}
		}
		if !pause(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

// runInside runs the task's command inside a sandbox that was there before. Its end
// comes over the same stream as its output: a stream that is lost leaves both open.
func (r *Runner) runInside(ctx context.Context, t Task, p *outputTracker) (sandbox.Exit, error) {
	a := t.Last()
	env := r.programEnvironment(t)
	if t.Spec.SessionID != "" && t.Resumed {
		env = append(env, sessionVariable+"="+t.Spec.SessionID)
	}
	out, errs := newLines(p, "stdout"), newLines(p, "stderr")
	exit, err := r.o.Sandboxes.Exec(ctx, a.Ref(), providers.Command{
		Args: t.Spec.Command, Env: env, Workdir: t.Spec.Workdir, Stdout: out, Stderr: errs,
	})
	out.flushRest()
	errs.flushRest()
	if err == nil && ctx.Err() != nil {
		return exit, ctx.Err()
	}
	return exit, err
}
