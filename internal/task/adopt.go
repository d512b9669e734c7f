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

// Bounds of one sweep (tasks.md E3): every start of sbx may pay for it. What has to
// be looked at twice, two seconds apart, to be seen gone (daytona) fits into it.
const (
	SweepTasks = 5
	SweepTime  = 5 * time.Second
)

// Adopted is what became of a task that a sweep has looked at.
type Adopted struct {
	Task Task
	Err  error
}

// Sweep takes over what dead processes left, as far as that takes no waiting: what is
// decided is ended, what is in doubt is resolved, what has ended is concluded. A
// program that still runs, within its time, is left to run, and so is a task that
// waits for an attempt, until its time is over. Those come first that were left
// alone for longest, so that one that cannot be ended keeps no other from it.
func Sweep(ctx context.Context, o Options) ([]Adopted, error) {
	ctx, stop := context.WithTimeout(ctx, SweepTime)
	defer stop()
	tasks, err := o.Ledger.List(ctx, store.TaskQuery{Live: true})
	if err != nil {
		return nil, err
	}
	tasks = slices.DeleteFunc(tasks, func(t Task) bool { return !o.isAbandoned(t) || !o.mayAdopt(t) || t.awaitsOwner() })
	slices.SortStableFunc(tasks, func(a, b Task) int { return a.LeaseUntil.Compare(b.LeaseUntil) })
	return adoptAll(ctx, o, tasks), nil
}

// adoptAll goes on with up to SweepTasks tasks, all at once: time is short. Those
// that need nothing do not count.
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

// awaitsOwner says that what comes next is an attempt, which a sweep does not
// begin, and that there is time for it yet.
func (t *Task) awaitsOwner() bool {
	a := t.Last()
	if t.Phase != Working || a != nil && a.Retry == nil || !t.AllGone() {
		return false
	}
	return !t.isOverdue()
}

// isOverdue says of a task that nobody holds that there is no more use in waiting for
// somebody.
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

// isAbandoned says that nobody goes on with a task: its lease is over, or its owner
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

// mayAdopt keeps what can only be gone on with on the host of its owner for there:
// what was collected lies on that host's disk. What is decided may be ended by all,
// and what its host has left alone for LostAfter is brought to an end by any.
func (o Options) mayAdopt(t Task) bool {
	if !t.LeaseUntil.IsZero() && t.ReadAt.Sub(t.LeaseUntil) >= LostAfter {
		return true
	}
	if slices.ContainsFunc(t.Attempts, o.onOtherHost) {
		return false
	}
	return t.Phase == Stopping || t.Owner.Host == o.Owner.Host || t.Owner.Host == ""
}

// adoptOne takes a task over and goes on with it until it is over or would have to
// be waited for. false = there was nothing to do.
func adoptOne(ctx context.Context, o Options, t Task) (Task, bool, error) {
	r := NewRunner(o, nil, nil)
	r.settleOnly, r.giveUp = true, t.isOverdue()
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
	r.reachPoint("adopted")
	now, err := r.Run(ctx, taken)
	if errors.Is(err, ErrNotOwner) || ctx.Err() != nil {
		err = nil // the rest is for who goes on with it, or for the next sweep
	}
	return now, true, err
}

// programRuns says that a task's program runs, and may.
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
		return false, nil
	}
	return true, err // nothing can be said of it: it is left alone
}
