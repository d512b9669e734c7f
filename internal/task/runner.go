package task

import (
	"context"
	"errors"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/store"
)

// Runner brings one task to its end. Its only input is the stored task, so another Runner
// can resume after a crash with the same steps.
type Runner struct {
	o          Options
	env        []string        // values for the program; never stored
	stop       <-chan struct{} // closed when the operator wants the task stopped
	observerMu sync.Mutex

	followedAttempt int               // the attempt whose end this process saw itself
	enteredAttempt  int               // the attempt with an existing sandbox that this process has entered
	settleOnly      bool              // it settles what exists, and begins no attempt
	pushTried       bool              // this process has tried to publish
	giveUp          bool              // it concludes a task that no process began in its time
	createEnded     map[int]time.Time // when this process's own creates ended, by attempt and by its own clock
	permit          Permit            // of the breaker, for the attempt; zero = none
}

// NewRunner makes a Runner. env are KEY=VALUE words for the program; closing stop asks for
// a stop, nil = never.
func NewRunner(o Options, env []string, stop <-chan struct{}) *Runner {
	if o.CrashPoint == nil {
		o.CrashPoint = func(string) {}
	}
	if o.Jitter == nil {
		o.Jitter = func() float64 { return 0.5 }
	}
	if o.Nonce == nil {
		o.Nonce = func() string { return randomName("", 16) }
	}
	return &Runner{o: o, env: env, stop: stop, createEnded: map[int]time.Time{}}
}

// errSweeping reports that the next step needs a process that stays.
var errSweeping = errors.New("it waits for a process to continue it")

// ErrUnverified reports that the task is decided and its end is not verified: some sandbox
// was not seen to be gone, or it is unknown whether the work was published.
var ErrUnverified = errors.New("its end is not verified")

// Run brings a task to its end. It returns
//   - nil: the task is over;
//   - ErrUnverified inside fault.KindUnverified: the task is decided, and part of its end
//     was not verified; the next sbx goes on with it;
//   - ErrNotOwner inside fault.KindLocked: another process has taken it over;
//   - the end of ctx: the task is left as it is, to the process that finds its lease expired;
//   - an error of the store, when it cannot be written for longer than a lease.
func (r *Runner) Run(ctx context.Context, t Task) (Task, error) {
	t, err := r.runToEnd(ctx, t)
	r.o.forgetWork(t)
	return t, err
}

func (r *Runner) runToEnd(ctx context.Context, t Task) (Task, error) {
	defer r.releasePermit(context.WithoutCancel(ctx), "") // of a probe whose end nobody saw
	t, err := r.changeTask(ctx, t.ID, func(n *Task) error { return n.Acquire(r.o.Owner) })
	if errors.Is(err, ErrHeld) {
		return t, r.notOwnerError(t)
	}
	if err != nil && !errors.Is(err, ErrFinal) {
		return t, err
	}
	r.replayOutput(ctx, t)
	for !t.State.Final() {
		if ctx.Err() != nil {
			return r.releaseTask(ctx, t)
		}
		next, err := r.runStep(ctx, t)
		switch {
		case err == nil && r.ownedByOther(next):
			return next, r.notOwnerError(next)
		case err == nil:
			t = next
		case ctx.Err() != nil, errors.Is(err, errSweeping):
			return r.releaseTask(ctx, t)
		case errors.Is(err, ErrNotOwner), errors.Is(err, ErrFinal), errors.Is(err, ErrStopped), errors.Is(err, ErrHeld), errors.Is(err, ErrNotGone):
			now, err := r.readTask(ctx, t.ID)
			if err != nil {
				return t, err
			}
			if r.ownedByOther(now) { // a decided task is not: any process may help to end it
				return now, r.notOwnerError(now)
			}
			t = now
		default:
			if errors.Is(err, ErrUnverified) {
				_, _ = r.releaseTask(ctx, t) // the next process need not wait for the lease
			}
			return next, err
		}
		r.notifyChanged(t)
	}
	return t, nil
}

// runStep takes the next step of a task. Its only input is the stored task, so another
// process takes the same step after a crash.
func (r *Runner) runStep(ctx context.Context, t Task) (Task, error) {
	switch t.Phase {
	case Stopping:
		return r.finishTask(ctx, t)
	case Publishing:
		return r.finishPublication(ctx, t)
	case Working:
	}
	if open := t.Last(); open != nil && open.Retry == nil {
		return r.continueAttempt(ctx, t, *open)
	}
	for _, a := range t.Attempts { // a sandbox that was found after its attempt was taken for gone
		if a.GoneAt.IsZero() && !t.keepsSandbox(a) {
			return r.clearAttempt(ctx, t, a)
		}
	}
	switch {
	case r.giveUp:
		return r.concludeAbandoned(ctx, t)
	case r.settleOnly:
		return t, errSweeping
	}
	return r.beginAttempt(ctx, t)
}

// continueAttempt takes the next step of an attempt whose end is not decided.
func (r *Runner) continueAttempt(ctx context.Context, t Task, a Attempt) (Task, error) {
	switch {
	case a.Exit != nil:
		return r.decideNext(ctx, t)
	case a.Expired != ReasonNone:
		return r.changeTask(ctx, t.ID, func(n *Task) error {
			return n.End(t.Fence, Ended{Exit: timeoutExit(n.Last().Expired, n.ReadAt)})
		})
	case a.Sandbox != "" && !a.Reused, a.Sandbox != "" && t.State == Running && r.enteredAttempt == a.N:
		return r.followProgram(ctx, t)
	}
	return r.recordLostCreate(ctx, t)
}

// concludeAbandoned concludes a task that no process went on with in its time.
func (r *Runner) concludeAbandoned(ctx context.Context, t Task) (Task, error) {
	return r.changeTask(ctx, t.ID, func(n *Task) error {
		if n.Spec.Limits.Deadline > 0 && !n.diedWithBranch() {
			return n.Conclude(t.Fence, TimedOut, ReasonDeadline, "its runner has died, and its deadline was reached")
		}
		return n.Conclude(t.Fence, Failed, ReasonLost, "its runner has died, and no process continued it")
	})
}

// releaseTask gives up the lease of an unfinished task, and postpones the next sweep of one that a
// sweep could not settle. Where that cannot be written, the lease expires by itself.
func (r *Runner) releaseTask(ctx context.Context, t Task) (Task, error) {
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	if now, err := r.o.Ledger.Change(last, t.ID, func(n *Task) error {
		if r.settleOnly && !n.awaitsOwner() {
			n.postponeSweep()
		}
		return n.ReleaseLease(t.Fence)
	}); err == nil {
		t = now
	}
	return t, context.Cause(ctx)
}

// ownedByOther reports whether an undecided task, just read, belongs to another process. A
// successful change does not prove that it is this one's, because any process may record
// facts.
func (r *Runner) ownedByOther(t Task) bool {
	return !t.State.Final() && t.Phase != Stopping && t.Owner != r.o.Owner && t.Owner.PID != 0
}

func (r *Runner) notOwnerError(t Task) error {
	return fault.New(fault.KindLocked, "%w: %s (pid %d on %s)", ErrNotOwner, t.Owner.Who, t.Owner.PID, t.Owner.Host).
		At("", "task "+t.ID).WithHint("`sbx tasks show %s` shows its progress", t.ID)
}

// changeTask is Ledger.Change, retried while the store does not answer for less than a
// lease.
func (r *Runner) changeTask(ctx context.Context, id string, rule func(*Task) error) (Task, error) {
	var asked store.Task
	return retryUntilStored(ctx, func() (Task, error) { return r.o.Ledger.changeFrom(ctx, id, rule, &asked) })
}

func (r *Runner) readTask(ctx context.Context, id string) (Task, error) {
	return retryUntilStored(ctx, func() (Task, error) { return r.o.Ledger.Read(ctx, id) })
}

// retryUntilStored repeats a request that a store has refused for a moment, for up to a
// lease. The task makes no progress meanwhile: nothing is done that cannot be written.
func retryUntilStored[T any](ctx context.Context, request func() (T, error)) (T, error) {
	pauses := poll.NewBackoff(50*time.Millisecond, time.Second)
	var giveUp <-chan time.Time
	for {
		got, err := request()
		if err == nil || !fault.Retryable(err) || ctx.Err() != nil {
			return got, err
		}
		if giveUp == nil {
			giveUp = time.After(LeaseFor)
		}
		select {
		case <-pauses.After():
			continue
		case <-ctx.Done():
		case <-giveUp:
		}
		return got, err
	}
}

func (r *Runner) notifyChanged(t Task) {
	if r.o.Observer == nil {
		return
	}
	r.observerMu.Lock()
	defer r.observerMu.Unlock()
	r.o.Observer.Changed(t)
}

func (r *Runner) sendMessage(text string) {
	if r.o.Observer == nil {
		return
	}
	r.observerMu.Lock()
	defer r.observerMu.Unlock()
	r.o.Observer.Message(text)
}
