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
	budgetLook = 200 * time.Millisecond
	roomLook   = time.Second
	breakLook  = 5 * time.Second
)

// intent is an attempt that is about to begin.
type intent struct {
	Attempt

	recreated bool
	leaves    Leave // the breaker's, which let it in
}

// begin waits until the next attempt may be made, and makes it.
func (r *Runner) begin(ctx context.Context, t Task) (Task, error) {
	next := intent{Attempt: Attempt{Provider: t.Place(), Nonce: r.nonce(), MemoryMB: t.memoryMB()}, recreated: t.Recreated}
	err := r.guarded(ctx, t, t.deadline(), func(ctx context.Context) (err error) {
		if wait := left(t.NextAt, t.ReadAt); wait > 0 && !pause(ctx, wait) {
			return ctx.Err()
		}
		if len(t.Attempts) == 0 && t.Spec.Publishes() { // what could not be published anyhow is not begun
			if _, err := r.o.Publisher.Prepare(ctx, t); err != nil {
				return unpublishable{err}
			}
		}
		if next.leaves, err = r.enter(ctx, t, next.Provider, next.MemoryMB); err != nil {
			return err
		}
		return r.enters(ctx, t, &next)
	})
	now, asked := t, time.Now()
	if err == nil {
		now, err = r.assign(ctx, t, next.Attempt, next.recreated)
	}
	if err != nil {
		r.giveBack(ctx, t, next)
		if next.leaves.Done != nil {
			next.leaves.Done(context.WithoutCancel(ctx), "")
		}
		return r.notBegun(ctx, t, err)
	}
	r.changed(now)
	r.at("intent")
	r.leaves = next.leaves
	if next.Reused {
		return r.enterKept(ctx, now)
	}
	if err := r.fresh(ctx, now, asked); err != nil {
		return r.notAsked(ctx, now, err)
	}
	return r.create(ctx, now)
}

// fresh looks right before a create whether it is still to be asked for: the
// deadline may have passed while the intent was being written, or while the store
// took its time to answer, and who was stopped since then, by a signal or with the
// whole machine, may have lost the task. asked is when the intent was sent to the
// store.
func (r *Runner) fresh(ctx context.Context, t Task, asked time.Time) error {
	for looked := false; ; looked = true {
		age := time.Now().Round(0).Sub(asked.Round(0)) // by the wall: a suspended machine's own clock stands still
		overtaken := !t.DeadlineAt.IsZero() && !t.ReadAt.Add(age).Before(t.DeadlineAt)
		switch {
		case t.late():
			return ErrLate
		case age < time.Second, looked && !overtaken:
			return nil
		}
		asked = time.Now()
		now, err := r.change(ctx, t.ID, func(n *Task) error {
			if n.late() {
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

// notAsked notes of an attempt that its create was never asked for.
func (r *Runner) notAsked(ctx context.Context, t Task, err error) (Task, error) {
	n := t.Last().N
	now, failed := r.change(ctx, t.ID, func(task *Task) error { return task.gone(n, "its create was never asked for") })
	if failed != nil && !errors.Is(failed, ErrOver) {
		return now, failed
	}
	if errors.Is(err, ErrLate) {
		return r.change(ctx, t.ID, func(n *Task) error { return n.Expire(t.Fence, ReasonDeadline) })
	}
	return now, err
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
func (r *Runner) enter(ctx context.Context, t Task, place string, mb int64) (Leave, error) {
	for {
		why, look := r.noRoom(ctx, place, mb), roomLook
		var leaves Leave
		if why == "" && r.o.Breaker != nil {
			var err error
			if leaves, err = r.o.Breaker.Allow(ctx, place); err != nil {
				why, look = "breaker: "+err.Error(), breakLook
			}
		}
		if why == "" {
			return leaves, nil
		}
		if err := r.waits(ctx, t, why); err != nil {
			return Leave{}, err
		}
		if !pause(ctx, look) {
			return Leave{}, ctx.Err()
		}
	}
}

// noRoom is why the place has no room for one sandbox more; "" = it has.
func (r *Runner) noRoom(ctx context.Context, place string, mb int64) string {
	if r.o.Room == nil {
		return ""
	}
	err := r.o.Room.Free(ctx, place, mb)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, providers.ErrSandboxLimit):
		return "limit: " + err.Error()
	}
	return "memory: " + err.Error()
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
			if err := r.waits(ctx, t, waitsForBudget); err != nil {
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
