package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// finishTask ends what was made for a decided task, and makes the verdict final when all
// of it was seen to be gone. Everybody may help with it at the same time.
func (r *Runner) finishTask(ctx context.Context, t Task) (Task, error) {
	var err error
	if t.Kept != nil && !t.State.Final() && r.o.KeepList != nil {
		if _, err := retryUntilStored(ctx, func() (struct{}, error) { return struct{}{}, r.o.KeepList.Keep(ctx, *t.Kept, t.ID) }); err != nil {
			return t, err
		}
	}
	for _, a := range t.Attempts {
		if a.GoneAt.IsZero() && !t.keepsSandbox(a) {
			if t, err = r.endAttempt(ctx, t, a.N); err != nil {
				return t, err
			}
		}
	}
	r.reachPoint("gone")
	now, err := r.changeTask(ctx, t.ID, func(n *Task) error { return n.Finish() })
	if errors.Is(err, ErrNotGone) { // something turned up meanwhile: once more
		return r.readTask(ctx, t.ID)
	}
	return now, err
}

// endAttempt ends an attempt's sandbox and notes that it is gone; an error of
// fault.KindUnverified where that was not seen.
func (r *Runner) endAttempt(ctx context.Context, t Task, n int) (Task, error) {
	if r.o.onOtherHost(t.Attempts[n-1]) {
		return r.awaitOtherHost(ctx, t, n)
	}
	if t.Attempts[n-1].Sandbox == "" {
		now, err := r.settleCreate(ctx, t, n)
		if err != nil || !now.Attempts[n-1].GoneAt.IsZero() {
			return now, err
		}
		t = now
	}
	a := t.Attempts[n-1]
	r.reachPoint("ending")
	if t.Spec.NoKill && a.Expired != ReasonNone {
		return r.checkEndedAlone(ctx, t, a)
	}
	ending := r.endSandbox(ctx, t.ID, a)
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	r.reachPoint("ended")
	switch ending.Outcome {
	case sandbox.OutcomeVerified, sandbox.OutcomeAlreadyGone:
		how := string(ending.Outcome)
		if ending.Reason != "" {
			how += ": " + ending.Reason
		}
		return r.changeTask(ctx, t.ID, func(task *Task) error { return task.recordGone(n, how) })
	case sandbox.OutcomeAccepted, sandbox.OutcomeStuck, sandbox.OutcomeFailed, sandbox.OutcomeChanged,
		sandbox.OutcomeSkipped, sandbox.OutcomeNotAttempted:
	}
	return t, unverifiedError(t, fmt.Sprintf("%s is %s: %s", a.Ref(), ending.Outcome, ending.Reason))
}

// onOtherHost says that an attempt's sandbox lives where this host cannot see it.
func (o Options) onOtherHost(a Attempt) bool {
	return o.HostBound != nil && a.Host != "" && a.Host != o.Owner.Host && a.GoneAt.IsZero() && o.HostBound(a.Provider)
}

// awaitOtherHost waits for up to EndWait until a process of the other host has ended
// an attempt's sandbox: what is decided, its runner does.
func (r *Runner) awaitOtherHost(ctx context.Context, t Task, n int) (Task, error) {
	for began := time.Now(); !r.settleOnly && time.Since(began) < EndWait && pause(ctx, endInterval); {
		now, err := r.readTask(ctx, t.ID)
		if err != nil || now.State.Final() || !now.Attempts[n-1].GoneAt.IsZero() {
			return now, err
		}
	}
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	a := t.Attempts[n-1]
	return t, unverifiedError(t, "attempt "+number(n)+" at "+a.Provider+" is on the host "+a.Host+", and only an sbx there can end it")
}

// endInterval is the pause between two looks for what another host has ended.
const endInterval = 200 * time.Millisecond

// checkEndedAlone looks whether a sandbox has ended that sbx may not end.
func (r *Runner) checkEndedAlone(ctx context.Context, t Task, a Attempt) (Task, error) {
	now, err := r.o.Sandboxes.Get(ctx, a.Ref())
	if kind := fault.KindOf(err); kind == fault.KindGone || kind == fault.KindNotFound || err == nil && now.State.Ended() {
		return r.changeTask(ctx, t.ID, func(task *Task) error { return task.recordGone(a.N, "its provider's own limit") })
	}
	return t, unverifiedError(t, "its limit was reached, and ending it was switched off (authoritative_timeout): the provider's own limit ends "+a.Ref().String())
}

// recordNothingMade is gone for an attempt whose create was seen to have made nothing. Who
// asked for it may have written down meanwhile what it made after all: then that is to
// be ended.
func (t *Task) recordNothingMade(n int) error {
	if a, err := t.attemptNumber(n); err != nil || a.Sandbox != "" {
		return cmp.Or(err, errUnchanged)
	}
	return t.recordGone(n, "two looks for what its create may have made showed nothing")
}

// recordGone is Gone, which another process may have written first, and Finish where that
// was the last of a decided task: one change instead of two.
func (t *Task) recordGone(n int, how string) error {
	if err := t.Gone(n, how); err != nil && !errors.Is(err, errUnchanged) {
		return err
	}
	if t.Phase == Stopping && t.AllGone() {
		return t.Finish()
	}
	return nil
}

// endOrigin is what a journal says of the end of a task's sandbox.
func endOrigin(task string) fleet.EndOrigin {
	return fleet.EndOrigin{Verb: "task", Reason: "the end of task " + task}
}

// endSandbox asks for the end of an attempt's sandbox, once, and waits until it is seen. What
// was asked and answered is kept with the task.
func (r *Runner) endSandbox(ctx context.Context, id string, a Attempt) sandbox.Ending {
	out := sandbox.Ending{Ref: a.Ref(), Outcome: sandbox.OutcomeNotAttempted}
	o := fleet.EndOptions{Origin: endOrigin(id), Wait: EndWait, By: r.o.Owner.Who, Delete: r.o.DeleteOnEnd != nil && r.o.DeleteOnEnd(a.Provider)}
	if a.Exit != nil && a.Exit.Class == sandbox.ClassGone {
		o.Delete = false // that it runs no more is what is left to be seen; what it was kept under nobody can name
	}
	if r.o.ReadsProveEnds == nil || !r.o.ReadsProveEnds(a.Provider) {
		r.recordEndRequests(ctx, id, a, &o)
	}
	for ending := range safety.End(ctx, r.o.Sandboxes, []sandbox.Sandbox{target(a)}, safety.Options{Verb: safety.VerbTask, How: o}) {
		out = ending
	}
	return out
}

// recordEndRequests has an ending go by the requests that the task knows of, and notes its own:
// before it is sent, since who sends it may die before the answer comes. What cannot be
// noted keeps no sandbox alive.
func (r *Runner) recordEndRequests(ctx context.Context, id string, a Attempt, o *fleet.EndOptions) {
	note := func(request sandbox.EndRequest) {
		_, _ = r.o.Ledger.Change(ctx, id, func(t *Task) error { return t.EndAsked(a.N, request) })
	}
	o.Record.Earlier = func(sandbox.Ref) *sandbox.EndRequest { return a.EndRequest }
	o.Record.BeforeRequest = func(_ context.Context, s sandbox.Sandbox) error {
		note(sandbox.EndRequest{At: time.Now().UTC(), Detail: "no answer is recorded", Delete: o.Delete, CreatedAt: s.CreatedAt, StartedAt: s.StartedAt})
		return nil
	}
	o.Record.AfterRequest = func(_ sandbox.Ref, request sandbox.EndRequest) { note(request) }
}

// settleCreate finds out what a create has made whose answer nobody has: by the
// nonce, until it is found or two looks in a row have shown nothing after the time
// in which it could still make something (tasks.md R4).
func (r *Runner) settleCreate(ctx context.Context, t Task, n int) (Task, error) {
	a := t.Attempts[n-1]
	empty := 0
	for failed := 0; ; {
		found, err := r.o.Sandboxes.Labelled(ctx, a.Provider, map[string]string{sandbox.LabelNonce: a.Nonce})
		switch {
		case ctx.Err() != nil:
			return t, ctx.Err()
		case err != nil:
			if failed++; failed > settleTries || !fault.Retryable(err) {
				return t, unverifiedError(t, "it is not known what the create at "+a.Provider+" has made: "+err.Error())
			}
			empty = 0
		case len(found) > 0:
			return r.changeTask(ctx, t.ID, func(task *Task) error { return task.Found(n, found[0].ID) })
		case r.createSettled(a, t):
			if empty++; empty > 1 {
				return r.changeTask(ctx, t.ID, func(task *Task) error { return task.recordNothingMade(n) })
			}
		}
		if !pause(ctx, SettleLook) {
			return t, ctx.Err()
		}
		now, err := r.readTask(ctx, t.ID)
		if err != nil {
			return t, err
		}
		if t = now; t.State.Final() || t.Attempts[n-1].Sandbox != "" || !t.Attempts[n-1].GoneAt.IsZero() {
			return t, nil
		}
	}
}

// settleTries is how often a listing may fail before what a create has made is left
// open.
const settleTries = 10

// createSettled says that the create of an attempt can make nothing any more. An API may
// go on with a request whose sender has given up, so that it takes Settling from then
// on. Who has not asked for it himself counts from when the one who did lost the
// right to, and grants him the time in which he notices, a lease, unless he was known
// to be dead.
func (r *Runner) createSettled(a Attempt, t Task) bool {
	if a.Settled {
		return true
	}
	window := time.Minute
	if r.o.SettleTime != nil {
		window = r.o.SettleTime(a.Provider)
	}
	if at, own := r.createEnded[a.N]; own {
		return time.Since(at) >= window
	}
	if !a.Dead {
		window += LeaseFor + RenewEvery
	}
	return !a.CutAt.IsZero() && t.ReadAt.Sub(a.CutAt) >= window
}
