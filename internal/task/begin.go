package task

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// How often what a task waits for is looked at again.
const (
	budgetInterval  = 200 * time.Millisecond
	memoryInterval  = time.Second
	breakerInterval = 5 * time.Second
)

// plannedAttempt is an attempt that is about to begin.
type plannedAttempt struct {
	Attempt

	recreated bool
	permit    Permit // the breaker's, which let it in
}

// beginAttempt waits until the next attempt may be made, and makes it.
func (r *Runner) beginAttempt(ctx context.Context, t Task) (Task, error) {
	next := plannedAttempt{Attempt: Attempt{Provider: t.Place(), Nonce: r.newNonce(), MemoryMB: t.nextMemoryMB()}, recreated: t.Recreated}
	err := r.guarded(ctx, t, t.deadlineLimit(), func(ctx context.Context) (err error) {
		if wait := timeLeft(t.NextAt, t.ReadAt); wait > 0 && !pause(ctx, wait) {
			return ctx.Err()
		}
		if len(t.Attempts) == 0 && t.Spec.Publishes() { // what could not be published anyhow is not begun
			if _, err := r.o.Publisher.Prepare(ctx, t); err != nil {
				return unpublishableError{err}
			}
		}
		if next.permit, err = r.awaitAdmission(ctx, t, next.Provider, next.MemoryMB); err != nil {
			return err
		}
		return r.chooseSandbox(ctx, t, &next)
	})
	now, asked := t, time.Now()
	if err == nil {
		now, err = r.assignAttempt(ctx, t, next.Attempt, next.recreated)
	}
	if err != nil {
		r.returnClaim(ctx, t, next)
		if next.permit.Done != nil {
			next.permit.Done(context.WithoutCancel(ctx), "")
		}
		return r.concludeUnbegun(ctx, t, err)
	}
	r.notifyChanged(now)
	r.reachPoint("intent")
	r.permit = next.permit
	if next.Reused {
		return r.enterSandbox(ctx, now)
	}
	if err := r.confirmIntent(ctx, now, asked); err != nil {
		return r.withdrawIntent(ctx, now, err)
	}
	return r.createSandbox(ctx, now)
}

// confirmIntent looks right before a create whether it is still to be asked for: the
// deadline may have passed while the intent was being written, or while the store
// took its time to answer, and who was stopped since then, by a signal or with the
// whole machine, may have lost the task. asked is when the intent was sent to the
// store.
func (r *Runner) confirmIntent(ctx context.Context, t Task, asked time.Time) error {
	for looked := false; ; looked = true {
		age := time.Now().Round(0).Sub(asked.Round(0)) // by the wall: a suspended machine's own clock stands still
		overtaken := !t.DeadlineAt.IsZero() && !t.ReadAt.Add(age).Before(t.DeadlineAt)
		switch {
		case t.pastDeadline():
			return ErrLate
		case age < time.Second, looked && !overtaken:
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

// withdrawIntent notes of an attempt that its create was never asked for.
func (r *Runner) withdrawIntent(ctx context.Context, t Task, err error) (Task, error) {
	n := t.Last().N
	now, failed := r.changeTask(ctx, t.ID, func(task *Task) error { return task.recordGone(n, "its create was never asked for") })
	if failed != nil && !errors.Is(failed, ErrFinal) {
		return now, failed
	}
	if errors.Is(err, ErrLate) {
		return r.changeTask(ctx, t.ID, func(n *Task) error { return n.Expire(t.Fence, ReasonDeadline) })
	}
	return now, err
}

// unpublishableError says that there is no use in beginning: what comes of it could not be
// published.
type unpublishableError struct{ error }

func (u unpublishableError) Unwrap() error { return u.error }

// concludeUnbegun judges why no attempt could be made.
func (r *Runner) concludeUnbegun(ctx context.Context, t Task, err error) (Task, error) {
	var expired expiredError
	var unfit unpublishableError
	switch {
	case errors.As(err, &unfit) && !decidedElsewhere(ctx, err):
		return r.concludeUnpublished(ctx, t, unfit.error)
	case errors.As(err, &expired), errors.Is(err, ErrLate):
		return r.changeTask(ctx, t.ID, func(n *Task) error {
			return n.Conclude(t.Fence, TimedOut, ReasonDeadline, "its deadline was reached before another attempt could begin")
		})
	case errors.Is(err, errTooBig):
		return r.changeTask(ctx, t.ID, func(n *Task) error { return n.Conclude(t.Fence, Failed, ReasonNone, err.Error()) })
	case errors.Is(err, ErrAttemptsUsed):
		return r.changeTask(ctx, t.ID, func(n *Task) error {
			return n.Conclude(t.Fence, Failed, ReasonNone, "all attempts are used up")
		})
	}
	return t, err
}

// awaitAdmission waits for the breaker of the place and for memory of the machine.
func (r *Runner) awaitAdmission(ctx context.Context, t Task, place string, mb int64) (Permit, error) {
	for {
		why, look := r.admissionObstacle(ctx, place, mb), memoryInterval
		var leaves Permit
		if why == "" && r.o.Breaker != nil {
			var err error
			if leaves, err = r.o.Breaker.Allow(ctx, place); err != nil {
				why, look = "breaker: "+err.Error(), breakerInterval
			}
		}
		if why == "" {
			return leaves, nil
		}
		if err := r.showWaiting(ctx, t, why); err != nil {
			return Permit{}, err
		}
		if !pause(ctx, look) {
			return Permit{}, ctx.Err()
		}
	}
}

// admissionObstacle is why the place has no room for one sandbox more; "" = it has.
func (r *Runner) admissionObstacle(ctx context.Context, place string, mb int64) string {
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

// showWaiting shows why a task has not begun.
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

// assignAttempt takes the task, and of its budget what the attempt needs. It is outside of
// the guards, which would take its own new fence for somebody else's.
func (r *Runner) assignAttempt(ctx context.Context, t Task, a Attempt, recreated bool) (Task, error) {
	for {
		now, err := r.changeTask(ctx, t.ID, func(n *Task) error {
			if err := n.checkWorking(t.Fence); err != nil {
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
		err = r.guarded(ctx, t, t.deadlineLimit(), func(ctx context.Context) error {
			if err := r.showWaiting(ctx, t, waitsForBudget); err != nil {
				return err
			}
			if !pause(ctx, budgetInterval) {
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
