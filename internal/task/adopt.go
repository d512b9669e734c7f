package task

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// Bounds of one sweep, which every start of sbx may run. The time is enough for an end that
// needs two reads two seconds apart (daytona).
const (
	SweepTasks = 5
	SweepTime  = 5 * time.Second
)

// sweepPause is how long the sweeps of all processes leave alone what that many have not settled: an end that no
// read can prove would cost each start of sbx a whole sweep.
func sweepPause(tries int) time.Duration { return min(time.Hour, time.Minute<<min(tries, 6)) }

// Adopted is the result of a sweep for one task.
type Adopted struct {
	Task Task
	Err  error
}

// Sweep takes over the tasks of dead processes, as far as that takes no waiting: it ends
// decided tasks, resolves unknown publications and concludes attempts that have ended. A
// program that still runs within its limits is left alone, and so is a task that waits for
// an attempt, until its time is over. The tasks that were left alone for longest come
// first, so that one that cannot be ended does not delay the others for ever. One that a sweep
// could not settle is left alone for sweepPause.
func Sweep(ctx context.Context, o Options) ([]Adopted, error) {
	ctx, stop := context.WithTimeout(ctx, SweepTime)
	defer stop()
	tasks, err := o.Ledger.List(ctx, store.TaskQuery{Live: true})
	if err != nil {
		return nil, err
	}
	tasks = slices.DeleteFunc(tasks, func(t Task) bool {
		return !o.isAbandoned(t) || !o.mayAdopt(t) || t.awaitsOwner() || t.ReadAt.Before(t.SweepAfter)
	})
	slices.SortStableFunc(tasks, func(a, b Task) int { return a.LeaseUntil.Compare(b.LeaseUntil) })
	return adoptAll(ctx, o, tasks), nil
}

// adoptAll adopts up to SweepTasks tasks concurrently, because time is short. Tasks that
// need nothing do not count.
func adoptAll(ctx context.Context, o Options, tasks []Task) []Adopted {
	var all []Adopted
	var mu sync.Mutex
	var adopting sync.WaitGroup
	turns := make(chan struct{}, SweepTasks)
	for _, t := range tasks {
		turns <- struct{}{}
		mu.Lock()
		enough := len(all) >= SweepTasks
		mu.Unlock()
		if enough || ctx.Err() != nil {
			break
		}
		adopting.Go(func() {
			defer func() { <-turns }()
			if now, did, err := adoptOne(ctx, o, t); did {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, Adopted{now, err})
			}
		})
	}
	adopting.Wait()
	return all
}

// awaitsOwner reports whether the next step of a task is an attempt, which a sweep does not
// begin, and there is still time for it.
func (t *Task) awaitsOwner() bool {
	a := t.Last()
	if t.Phase != Working || a != nil && a.Retry == nil || !t.AllGone() || t.diedWithBranch() {
		return false
	}
	return !t.isOverdue()
}

// isOverdue reports whether the time of a task without an owner is over.
func (t *Task) isOverdue() bool {
	since := t.CreatedAt
	if t.LeaseUntil.After(since) {
		since = t.LeaseUntil
	}
	switch limit := t.Spec.Limits.Deadline; {
	case !t.DeadlineAt.IsZero():
		return t.pastDeadline()
	case limit > 0:
		return t.ReadAt.Sub(t.CreatedAt) >= limit
	}
	return t.ReadAt.Sub(since) >= LostAfter
}

// isAbandoned reports whether no process works on a task: its lease is over, or its owner
// is known to be dead.
func (o Options) isAbandoned(t Task) bool {
	if !t.Held() {
		return !t.LeaseUntil.IsZero() || t.ReadAt.Sub(t.CreatedAt) > LeaseFor
	}
	return o.ownerDead(t.Owner)
}

func (o Options) ownerDead(owner Owner) bool {
	return o.Alive != nil && o.Alive(owner) == sandbox.False
}

// mayAdopt reports whether this host may take the task over. Before the decision only the
// owner's host may, because collected work is on its disk; a decided task may be ended by
// any host, and so may one that its host has left alone for LostAfter.
func (o Options) mayAdopt(t Task) bool {
	if !t.LeaseUntil.IsZero() && t.ReadAt.Sub(t.LeaseUntil) >= LostAfter {
		return true
	}
	if slices.ContainsFunc(t.Attempts, o.onOtherHost) {
		return false
	}
	return t.Phase == Stopping || t.Owner.Host == o.Owner.Host || t.Owner.Host == ""
}

// adoptOne takes a task over and works on it until it is over or would have to wait; false
// = there was nothing to do.
func adoptOne(ctx context.Context, o Options, t Task) (Task, bool, error) {
	r := NewRunner(o, nil, nil)
	r.settleOnly, r.giveUp = true, t.isOverdue() || t.diedWithBranch()
	if waiting, err := r.programRuns(ctx, t); waiting || err != nil {
		return t, false, err
	}
	taken, err := o.Ledger.Change(ctx, t.ID, func(n *Task) error { return n.Adopt(o.Owner, o.ownerDead(n.Owner) && n.Owner == t.Owner) })
	switch {
	case errors.Is(err, ErrHeld), errors.Is(err, ErrFinal):
		return t, false, nil
	case err != nil:
		return t, true, err
	}
	r.o.CrashPoint("adopted")
	now, err := r.Run(ctx, taken)
	if errors.Is(err, ErrNotOwner) || ctx.Err() != nil {
		err = nil // a later sweep or the new owner does the rest
	}
	return now, true, err
}

// programRuns reports whether the task's program still runs, within its limits.
func (r *Runner) programRuns(ctx context.Context, t Task) (bool, error) {
	a := t.Last()
	if t.Phase != Working || t.State != Running || a == nil || a.Exit != nil || a.Sandbox == "" || a.Expired != ReasonNone {
		return false, nil
	}
	for _, l := range t.attemptLimits(true) {
		if l.left <= 0 {
			return false, nil
		}
	}
	exit, err := r.o.Sandboxes.Exit(ctx, a.Ref())
	switch kind := fault.KindOf(err); {
	case err == nil:
		return exit == nil, nil
	case kind == fault.KindGone, kind == fault.KindNotFound:
		gone, err := r.o.Sandboxes.Vanished(ctx, a.Ref())
		return !gone, err
	}
	return true, err // its state is unknown, so it is left alone
}
