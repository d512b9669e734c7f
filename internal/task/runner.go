package task

import (
	"context"
	"errors"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// Runner brings one task to its end. It goes by what is kept alone: after a crash
// another Runner goes on from the same place with the same steps.
type Runner struct {
	o          Options
	env        []string        // values for the program; never kept
	stop       <-chan struct{} // closed: the operator wants it stopped
	observerMu sync.Mutex

	followedAttempt int               // the attempt whose end this process saw itself
	enteredAttempt  int               // the attempt that goes on in a kept sandbox, by this process's word
	settleOnly      bool              // it settles what is there, and begins nothing
	pushTried       bool              // it has tried to publish
	giveUp          bool              // it gives up what nobody has begun in its time
	createEnded     map[int]time.Time // when this process's own creates were over, by attempt and by its own clock
	permit          Permit            // the breaker's for the attempt; empty = it has none
}

// NewRunner makes a Runner. env are KEY=VALUE words for the program; stop asks for a
// stop when it is closed, nil = never.
func NewRunner(o Options, env []string, stop <-chan struct{}) *Runner {
	return &Runner{o: o, env: env, stop: stop, createEnded: map[int]time.Time{}}
}

// errSweeping says that what comes next needs a process that stays.
var errSweeping = errors.New("it waits for somebody to go on with it")

// ErrUnverified says that a task's end is decided and not yet made certain: some
// sandbox was not seen to be gone, or nobody can tell yet whether it was published.
var ErrUnverified = errors.New("its end is not verified")

// Run goes on with a task until it is over. It returns what it knows then:
//   - nil: the task is over;
//   - ErrUnverified inside fault.KindUnverified: its end is decided, and something
//     of it was not seen to be gone; the next sbx goes on with it;
//   - ErrMoved inside fault.KindLocked: another process has taken it over;
//   - the end of ctx: it is left as it is, to whoever finds its lease expired;
//   - an error of the store, when it cannot be written for longer than a lease.
func (r *Runner) Run(ctx context.Context, t Task) (Task, error) {
	t, err := r.runToEnd(ctx, t)
	r.o.forgetWork(t)
	return t, err
}

func (r *Runner) runToEnd(ctx context.Context, t Task) (Task, error) {
	defer r.leaveBreaker(ctx)
	t, err := r.acquireTask(ctx, t)
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
			return next, r.movedError(next)
		case err == nil:
			t = next
		case ctx.Err() != nil, errors.Is(err, errSweeping):
			return r.releaseTask(ctx, t)
		case errors.Is(err, ErrNotOwner), errors.Is(err, ErrFinal), errors.Is(err, ErrStopped), errors.Is(err, ErrHeld), errors.Is(err, ErrNotGone):
			if t, err = r.rereadTask(ctx, t); err != nil {
				return t, err
			}
		default:
			if errors.Is(err, ErrUnverified) {
				_, _ = r.releaseTask(ctx, t) // the next one need not wait for the lease
			}
			return next, err
		}
		r.notifyChanged(t)
	}
	return t, nil
}

// releaseTask gives the task back as it is. Where even that cannot be written, its lease
// ends by itself.
func (r *Runner) releaseTask(ctx context.Context, t Task) (Task, error) {
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	if now, err := r.o.Ledger.Change(last, t.ID, func(n *Task) error { return n.ReleaseLease(t.Fence) }); err == nil {
		t = now
	}
	return t, context.Cause(ctx)
}

// leaveBreaker frees a probe that nobody has judged.
func (r *Runner) leaveBreaker(ctx context.Context) {
	r.releasePermit(context.WithoutCancel(ctx), "")
}

// rereadTask looks at what somebody else has done. What still is to be decided and
// belongs to another process is left to it; what is decided may be helped with by
// everybody.
func (r *Runner) rereadTask(ctx context.Context, t Task) (Task, error) {
	now, err := r.readTask(ctx, t.ID)
	if err != nil {
		return t, err
	}
	if r.ownedByOther(now) {
		return now, r.movedError(now)
	}
	return now, nil
}

// acquireTask takes a task that is not this process's yet.
func (r *Runner) acquireTask(ctx context.Context, t Task) (Task, error) {
	now, err := r.changeTask(ctx, t.ID, func(n *Task) error { return n.Acquire(r.o.Owner) })
	if errors.Is(err, ErrHeld) {
		return now, r.movedError(now)
	}
	return now, err
}

// ownedByOther says of a task just read that it is another process's. Facts are written
// by everybody, so that a change that went well proves nothing.
func (r *Runner) ownedByOther(t Task) bool {
	return !t.State.Final() && t.Phase != Stopping && t.Owner != r.o.Owner && t.Owner.PID != 0
}

// movedError says whose a task is.
func (r *Runner) movedError(t Task) error {
	return fault.New(fault.KindLocked, "%w: %s (pid %d on %s)", ErrNotOwner, t.Owner.Who, t.Owner.PID, t.Owner.Host).
		At("", "task "+t.ID).WithHint("`sbx tasks show %s` says how it goes on", t.ID)
}

// runStep does the next thing that the task is in need of.
func (r *Runner) runStep(ctx context.Context, t Task) (Task, error) {
	open := t.Last()
	if open != nil && open.Retry != nil {
		open = nil
	}
	switch {
	case t.Phase == Stopping:
		return r.finishTask(ctx, t)
	case t.Phase == Publishing:
		return r.finishPublication(ctx, t)
	case open == nil && !t.AllGone():
		return r.endLeftovers(ctx, t)
	case open == nil && r.giveUp:
		return r.concludeAbandoned(ctx, t)
	case open == nil && r.settleOnly:
		return t, errSweeping
	case open == nil:
		return r.beginAttempt(ctx, t)
	case open.Expired != ReasonNone:
		return r.recordTimeout(ctx, t)
	case open.Exit != nil:
		return r.decideNext(ctx, t)
	case open.Sandbox != "" && !open.Reused:
		return r.followProgram(ctx, t)
	case open.Sandbox != "" && t.State == Running && r.enteredAttempt == open.N:
		return r.followProgram(ctx, t)
	}
	return r.recordLostCreate(ctx, t)
}

// changeTask is Ledger.Change, repeated while the store is away for less than a lease.
func (r *Runner) changeTask(ctx context.Context, id string, rule func(*Task) error) (Task, error) {
	var asked store.Task
	return retryUntilStored(ctx, func() (Task, error) { return r.o.Ledger.changeFrom(ctx, id, rule, &asked) })
}

func (r *Runner) readTask(ctx context.Context, id string) (Task, error) {
	return retryUntilStored(ctx, func() (Task, error) { return r.o.Ledger.Read(ctx, id) })
}

// retryUntilStored repeats what a store that is away for a moment has refused. Nothing of a
// task goes on meanwhile: what cannot be written is not done.
func retryUntilStored[T any](ctx context.Context, do func() (T, error)) (T, error) {
	var over *time.Timer
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		got, err := do()
		if err == nil || !fault.Retryable(err) || ctx.Err() != nil {
			return got, err
		}
		if over == nil {
			over = time.NewTimer(LeaseFor)
			defer over.Stop()
		}
		again := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			again.Stop()
			return got, err
		case <-over.C:
			again.Stop()
			return got, err
		case <-again.C:
		}
	}
}

func (r *Runner) reachPoint(point string) {
	if r.o.CrashPoint != nil {
		r.o.CrashPoint(point)
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

func (r *Runner) newNonce() string {
	if r.o.Nonce != nil {
		return r.o.Nonce()
	}
	return randomName("", 16)
}

func (r *Runner) roll() float64 {
	if r.o.Jitter != nil {
		return r.o.Jitter()
	}
	return 0.5
}

// pause waits; false = ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// target is a sandbox that is known to have been made.
func target(a Attempt) sandbox.Sandbox {
	return sandbox.Sandbox{Provider: a.Provider, ID: a.Sandbox, State: sandbox.StateRunning}
}
