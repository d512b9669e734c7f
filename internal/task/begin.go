package task

import (
	"cmp"
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// How often an attempt that may not begin yet asks again.
const (
	budgetInterval  = 200 * time.Millisecond
	memoryInterval  = time.Second
	breakerInterval = 5 * time.Second
)

// plannedAttempt is an attempt that is about to begin.
type plannedAttempt struct {
	Attempt

	recreated bool
	onto      string // see Task.Onto
	permit    Permit // of the breaker that admitted it
}

var (
	// errTooBig reports that the attempt's memory exceeds the whole budget.
	errTooBig   = errors.New("it does not fit into the memory budget")
	errRecreate = errors.New("the kept sandbox has ended")
)

// unpublishableError reports that the task's work could not be published, so that no
// attempt is made.
type unpublishableError struct{ error }

func (u unpublishableError) Unwrap() error { return u.error }

// beginAttempt makes the next attempt: it waits until one may begin, writes the intent
// down, and then creates the attempt's sandbox or enters one that exists already.
func (r *Runner) beginAttempt(ctx context.Context, t Task) (Task, error) {
	next := plannedAttempt{Attempt: Attempt{Provider: t.Place(), Nonce: r.o.Nonce(), MemoryMB: t.nextMemoryMB()}, recreated: t.Recreated}
	err := r.runGuarded(ctx, t, t.deadlineLimit(), func(ctx context.Context) (err error) {
		if err := poll.Sleep(ctx, t.NextAt.Sub(t.ReadAt)); err != nil {
			return err
		}
		if len(t.Attempts) == 0 && t.Spec.Publishes() {
			if next.onto, err = r.o.Publisher.Prepare(ctx, t); err != nil {
				return unpublishableError{err}
			}
		}
		if next.permit, err = r.awaitAdmission(ctx, t, next.Provider, next.MemoryMB); err != nil {
			return err
		}
		if err := r.makeBranch(ctx, t); err != nil {
			return err
		}
		return r.chooseSandbox(ctx, t, &next)
	})
	now, asked := t, time.Now()
	if err == nil {
		now, err = r.assignAttempt(ctx, t, next)
	}
	if err != nil {
		r.returnClaim(ctx, t, next)
		if next.permit.Done != nil {
			next.permit.Done(context.WithoutCancel(ctx), "")
		}
		return r.concludeUnbegun(ctx, t, err)
	}
	r.notifyChanged(now)
	r.o.CrashPoint("intent")
	r.permit = next.permit
	if next.Reused {
		return r.enterSandbox(ctx, now)
	}
	if err := r.confirmIntent(ctx, now, asked); err != nil {
		return r.withdrawIntent(ctx, now, err)
	}
	return r.createSandbox(ctx, now)
}

// awaitAdmission waits until this machine has memory for the attempt and the breaker of
// its place admits it.
func (r *Runner) awaitAdmission(ctx context.Context, t Task, place string, mb int64) (permit Permit, err error) {
	for {
		why, interval := r.memoryObstacle(ctx, place, mb), memoryInterval
		if why == "" {
			if r.o.Breaker == nil {
				return Permit{}, nil
			}
			if permit, err = r.o.Breaker.Allow(ctx, place); err == nil {
				return permit, nil
			}
			why, interval = "breaker: "+err.Error(), breakerInterval
		}
		if err := r.showWaiting(ctx, t, why); err != nil {
			return Permit{}, err
		}
		if err := poll.Sleep(ctx, interval); err != nil {
			return Permit{}, err
		}
	}
}

// memoryObstacle is why one more sandbox does not fit on this machine; "" = it fits.
func (r *Runner) memoryObstacle(ctx context.Context, place string, mb int64) string {
	if r.o.Memory == nil {
		return ""
	}
	err := r.o.Memory.CheckFree(ctx, place, mb)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, providers.ErrSandboxLimit):
		return "limit: " + err.Error()
	}
	return "memory: " + err.Error()
}

// showWaiting writes down why the task has not begun.
func (r *Runner) showWaiting(ctx context.Context, t Task, why string) error {
	now, err := r.changeTask(ctx, t.ID, func(n *Task) error {
		if err := n.checkWorking(t.Fence); err != nil {
			return err
		}
		return n.Wait(why)
	})
	if err == nil {
		r.notifyChanged(now)
	}
	return err
}

// chooseSandbox reserves for the first attempt the kept sandbox that the task was launched for.
func (r *Runner) chooseSandbox(ctx context.Context, t Task, next *plannedAttempt) error {
	wanted := t.Spec.Sandbox
	if len(t.Attempts) > 0 || wanted.ID == "" {
		return nil
	}
	mine, err := true, error(nil)
	if r.o.KeepList != nil {
		mine, err = retryUntilStored(ctx, func() (bool, error) { return r.o.KeepList.Claim(ctx, wanted, t.ID) })
	}
	switch {
	case err != nil:
		return err
	case mine:
		next.Provider, next.Sandbox, next.Reused, next.Settled = wanted.Provider, wanted.ID, true, true
	default:
		r.sendMessage("a new sandbox is created: " + wanted.String() + " was used, another process uses it, or its time limit was reached")
	}
	next.recreated = !mine
	return nil
}

// returnClaim puts a claimed sandbox that the attempt does not enter back onto the list.
// Where that cannot be written, the sandbox is ended with the task.
func (r *Runner) returnClaim(ctx context.Context, t Task, next plannedAttempt) {
	if next.Reused && r.o.KeepList != nil {
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_ = r.o.KeepList.Return(last, next.Ref(), t.ID)
	}
}

// assignAttempt takes the task and reserves the memory of the attempt in the budget. It
// runs outside the guards, which would take the new fence for another owner's.
func (r *Runner) assignAttempt(ctx context.Context, t Task, next plannedAttempt) (Task, error) {
	a := next.Attempt
	for {
		now, err := r.changeTask(ctx, t.ID, func(n *Task) error {
			if err := n.checkWorking(t.Fence); err != nil {
				return err
			}
			n.Recreated, n.Onto = next.recreated, cmp.Or(n.Onto, next.onto)
			return n.Assign(r.o.Owner, a)
		})
		if !errors.Is(err, store.ErrBudget) {
			return now, err
		}
		if most := r.o.Ledger.LimitMB; max(a.MemoryMB, t.Spec.MemoryBytes/sandbox.MiB) > most {
			return t, fault.New(fault.KindRefused, "%w: it needs %d MB, and the budget of all is %d MB", errTooBig, a.MemoryMB, most).
				WithHint("request less with --memory, or raise the budget")
		}
		err = r.runGuarded(ctx, t, t.deadlineLimit(), func(ctx context.Context) error {
			if err := r.showWaiting(ctx, t, waitsForBudget); err != nil {
				return err
			}
			return poll.Sleep(ctx, budgetInterval)
		})
		if err != nil {
			return t, err
		}
	}
}

// concludeUnbegun handles the errors that kept an attempt from beginning.
func (r *Runner) concludeUnbegun(ctx context.Context, t Task, err error) (Task, error) {
	unpublishable, cannotPublish := errors.AsType[unpublishableError](err)
	_, expired := errors.AsType[expiredError](err)
	verdict, why, said := Failed, ReasonNone, "all attempts are used up"
	switch {
	case cannotPublish && !decidedElsewhere(ctx, err):
		return r.concludeUnpublished(ctx, t, unpublishable.error)
	case expired, errors.Is(err, ErrLate):
		verdict, why, said = TimedOut, ReasonDeadline, "it reached its deadline before another attempt could start"
	case errors.Is(err, errTooBig):
		said = err.Error()
	case !errors.Is(err, ErrAttemptsUsed):
		return t, err
	}
	return r.changeTask(ctx, t.ID, func(n *Task) error { return n.Conclude(t.Fence, verdict, why, said) })
}

// confirmIntent checks right before a create that it is still to be requested. The
// deadline may have passed while the intent was being written, and a process that was
// suspended since then may have lost the task. asked is when the intent was sent to the
// store.
func (r *Runner) confirmIntent(ctx context.Context, t Task, asked time.Time) error {
	for confirmed := false; ; confirmed = true {
		age := time.Now().Round(0).Sub(asked.Round(0)) // by the wall clock: the monotonic clock stands still in a suspended machine
		overtaken := !t.DeadlineAt.IsZero() && !t.ReadAt.Add(age).Before(t.DeadlineAt)
		switch {
		case t.pastDeadline():
			return ErrLate
		case age < time.Second, confirmed && !overtaken:
			return nil
		}
		asked = time.Now()
		now, err := r.changeTask(ctx, t.ID, func(n *Task) error {
			if n.pastDeadline() {
				return ErrLate
			}
			return n.Renew(t.Fence)
		})
		if err != nil {
			return err
		}
		t = now
	}
}

// withdrawIntent records that the attempt's create was never requested.
func (r *Runner) withdrawIntent(ctx context.Context, t Task, err error) (Task, error) {
	n := t.Last().N
	now, failed := r.changeTask(ctx, t.ID, func(task *Task) error {
		if err := task.recordGone(n, "its create request was never sent"); err != nil {
			return err
		}
		task.Attempts[n-1].NeverMade = true
		return nil
	})
	if failed != nil && !errors.Is(failed, ErrFinal) {
		return now, failed
	}
	if errors.Is(err, ErrLate) {
		return r.changeTask(ctx, t.ID, func(n *Task) error { return n.Expire(t.Fence, ReasonDeadline) })
	}
	return now, err
}

// enterSandbox goes on in a sandbox that existed before the attempt, provided that it
// answers. One that is gone is replaced by a new one, without the agent's session; no
// program is ever installed again in an old one.
func (r *Runner) enterSandbox(ctx context.Context, t Task) (Task, error) {
	a := *t.Last()
	err := r.runGuarded(ctx, t, t.attemptLimits(false), func(ctx context.Context) error { return r.awaitHealthy(ctx, t, a) })
	switch expired, late := errors.AsType[expiredError](err); {
	case late:
		return r.changeTask(ctx, t.ID, func(n *Task) error { return n.Expire(t.Fence, expired.why) })
	case decidedElsewhere(ctx, err):
		return t, err
	case err != nil:
		r.sendMessage("a new sandbox is created: " + err.Error())
		e := Ended{Exit: vanishedExit(err)}
		return r.changeTask(ctx, t.ID, func(n *Task) error {
			n.Recreated = true
			return n.End(t.Fence, e)
		})
	}
	r.enteredAttempt = a.N
	r.reportRunning(ctx)
	return r.changeTask(ctx, t.ID, func(n *Task) error {
		n.Resumed = true
		return n.Started(t.Fence)
	})
}

// isGone reports whether the list of its provider confirms that a sandbox is gone which a probe did not find: a kept
// one has the work of a session.
func (r *Runner) isGone(ctx context.Context, a Attempt) bool {
	gone, unknown := r.o.Sandboxes.Vanished(ctx, a.Ref())
	return unknown == nil && gone
}

// awaitHealthy probes a kept sandbox, and waits while its condition says so.
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
			if r.isGone(ctx, a) {
				return errors.Join(errRecreate, err)
			}
		case kind == fault.KindUnsupported:
			return nil // without a probe the command itself shows whether the sandbox works
		case err != nil && !fault.Retryable(err):
			return err
		case err == nil:
			switch health.Condition {
			case providers.ConditionHealthy, providers.ConditionResumable:
				return nil
			case providers.ConditionRecreate, providers.ConditionBroken:
				if health.Condition == providers.ConditionBroken || r.isGone(ctx, a) {
					return fault.New(fault.KindGone, "%w: %s", errRecreate, health.Condition)
				}
			case providers.ConditionUnknown, "":
				r.sendMessage("whether " + a.Ref().String() + " answers is unknown")
				return nil
			case providers.ConditionWait:
			}
		}
		if err := poll.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}
