package task

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/policy"
	"sbx/internal/poll"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

const (
	endInterval = 200 * time.Millisecond // between two looks for what another host has ended
	// breakerPatience is how long an end waits that was not requested, since a circuit breaker is open: as after an engine was
	// restarted. Without it the sandbox would be left to the next command.
	breakerPatience = 2 * EndWait
	settleTries     = 10 // how often a listing may fail before what a create made is left open
)

// finishTask ends the sandboxes of a decided task, and makes the verdict final when all of
// them were seen to be gone. Any number of processes may do this at the same time.
func (r *Runner) finishTask(ctx context.Context, t Task) (Task, error) {
	var err error
	if t.Kept != nil && !t.State.Final() && r.o.KeepList != nil {
		if _, err := retryUntilStored(ctx, func() (struct{}, error) { return struct{}{}, r.o.KeepList.Keep(ctx, *t.Kept, t.ID) }); err != nil {
			return t, err
		}
	}
	for _, a := range t.Attempts {
		if a.GoneAt.IsZero() {
			if t, err = r.endOrKeep(ctx, t, a); err != nil {
				return t, err
			}
		}
	}
	if t, err = r.settleBranch(ctx, t); err != nil {
		return t, err
	}
	r.o.CrashPoint("gone")
	now, err := r.changeTask(ctx, t.ID, func(n *Task) error { return n.Finish() })
	if errors.Is(err, ErrNotGone) { // another process found one more sandbox meanwhile
		return r.readTask(ctx, t.ID)
	}
	return now, err
}

// endOrKeep ends an attempt, or the copies of the one that its task keeps.
func (r *Runner) endOrKeep(ctx context.Context, t Task, a Attempt) (Task, error) {
	if t.keepsSandbox(a) {
		return t, r.endCopies(ctx, t, a)
	}
	return r.endAttempt(ctx, t, a.N)
}

// endAttempt ends an attempt's sandbox and records that it is gone; fault.KindUnverified
// where that was not seen.
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
	r.o.CrashPoint("ending")
	if t.Spec.NoKill && a.Expired != ReasonNone {
		return r.checkEndedAlone(ctx, t, a)
	}
	ending := r.endSandbox(ctx, t, a)
	for began := time.Now(); errors.Is(ending.Err, policy.ErrOpen) && !r.settleOnly &&
		time.Since(began) < breakerPatience && poll.Sleep(ctx, clearInterval) == nil; {
		ending = r.endSandbox(ctx, t, a)
	}
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	r.o.CrashPoint("ended")
	if !seenGone(ending) {
		return t, unverifiedError(t, fmt.Sprintf("%s is %s: %s", a.Ref(), ending.Outcome, ending.Reason))
	}
	if err := r.endCopies(ctx, t, a); err != nil {
		return t, err
	}
	how := string(ending.Outcome)
	if ending.Reason != "" {
		how += ": " + ending.Reason
	}
	return r.changeTask(ctx, t.ID, func(task *Task) error { return task.recordGone(n, how) })
}

// endCopies ends what else has the mark of the attempt's create: a proxy that repeats the request makes a second
// sandbox, whose program runs as well.
func (r *Runner) endCopies(ctx context.Context, t Task, a Attempt) error {
	if a.Reused || a.Nonce == "" || r.o.ReadsProveEnds != nil && r.o.ReadsProveEnds(a.Provider) {
		return nil
	}
	found, err := r.o.Sandboxes.Copies(ctx, a.Ref(), a.Nonce)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return unverifiedError(t, "it is unknown whether its create made a second sandbox: "+err.Error())
	}
	for _, s := range found {
		if s.ID == a.Sandbox || s.State.Ended() {
			continue
		}
		second := a
		second.Sandbox, second.ExpiresAt = s.ID, s.ExpiresAt
		if out := r.endSandbox(ctx, t, second); !seenGone(out) {
			return unverifiedError(t, fmt.Sprintf("its create made a second sandbox: %s is %s: %s", second.Ref(), out.Outcome, out.Reason))
		}
		r.sendMessage("its create had made a second sandbox, " + second.Ref().String() + ", which is ended too")
	}
	return nil
}

// seenGone reports whether an ending proves that the sandbox is gone.
func seenGone(e sandbox.Ending) bool {
	return e.Outcome == sandbox.OutcomeVerified || e.Outcome == sandbox.OutcomeAlreadyGone
}

// onOtherHost reports whether an attempt's sandbox is on a host whose sandboxes this host
// cannot see.
func (o Options) onOtherHost(a Attempt) bool {
	return a.GoneAt.IsZero() && !o.CanReach(a.Ref(), a.Host)
}

// awaitOtherHost waits for up to EndWait until a process of the other host has ended an
// attempt's sandbox. The task is decided, so its runner there does so.
func (r *Runner) awaitOtherHost(ctx context.Context, t Task, n int) (Task, error) {
	for began := time.Now(); !r.settleOnly && time.Since(began) < EndWait && poll.Sleep(ctx, endInterval) == nil; {
		now, err := r.readTask(ctx, t.ID)
		if err != nil || now.State.Final() || !now.Attempts[n-1].GoneAt.IsZero() {
			return now, err
		}
	}
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	a := t.Attempts[n-1]
	return t, unverifiedError(t, "attempt "+strconv.Itoa(n)+" at "+a.Provider+" is on the host "+a.Host+", and only sbx on that host can terminate it")
}

// checkEndedAlone checks whether a sandbox has ended that sbx may not end.
func (r *Runner) checkEndedAlone(ctx context.Context, t Task, a Attempt) (Task, error) {
	if seenGone(lastEnding(safety.Verify(ctx, r.o.Sandboxes, []sandbox.Sandbox{a.target(t)}), a)) {
		return r.changeTask(ctx, t.ID, func(task *Task) error { return task.recordGone(a.N, "its provider's own limit") })
	}
	return t, unverifiedError(
		t, "its limit was reached, and its termination is switched off (authoritative_timeout): the provider's own limit ends "+a.Ref().String(),
	)
}

// endSandbox requests the end of an attempt's sandbox, once, and waits until it is seen.
// Request and answer are recorded with the task.
func (r *Runner) endSandbox(ctx context.Context, t Task, a Attempt) sandbox.Ending {
	o := fleet.EndOptions{
		Wait: EndWait, By: r.o.Owner.Who, Delete: r.o.DeleteOnEnd != nil && r.o.DeleteOnEnd(a.Provider),
	}
	if o.Delete && a.Exit != nil && a.Exit.Class == sandbox.ClassGone {
		o.Delete = r.mayHaveRecord(ctx, a) // without a record a snapshot cannot be named
	}
	recorded := t.Attempts[a.N-1].Sandbox
	if (recorded == "" || recorded == a.Sandbox) && (r.o.ReadsProveEnds == nil || !r.o.ReadsProveEnds(a.Provider)) {
		r.recordEndRequests(ctx, t.ID, a, &o)
	}
	return lastEnding(
		safety.End(ctx, r.o.Sandboxes, []sandbox.Sandbox{a.target(t)}, safety.Options{Verb: safety.VerbTask, How: o, Open: r.o.openEnds(t.endOrigin())}), a,
	)
}

// mayHaveRecord reports whether the provider may have a record of an attempt's sandbox: only a read by id and the list
// show together that there is none.
func (r *Runner) mayHaveRecord(ctx context.Context, a Attempt) bool {
	_, err := r.o.Sandboxes.Get(ctx, a.Ref())
	if kind := fault.KindOf(err); kind != fault.KindGone && kind != fault.KindNotFound {
		return true
	}
	if a.Reused || a.Nonce == "" { // it has the mark of another create
		return false
	}
	found, err := r.o.Sandboxes.Labelled(ctx, a.Provider, map[string]string{sandbox.LabelNonce: a.Nonce})
	return err != nil || slices.ContainsFunc(found, func(s sandbox.Sandbox) bool { return s.ID == a.Sandbox })
}

// target is the attempt's sandbox as it is known to the task.
func (a Attempt) target(t Task) sandbox.Sandbox {
	return sandbox.Sandbox{Provider: a.Provider, ID: a.Sandbox, TaskID: t.ID, State: sandbox.StateRunning, ExpiresAt: a.ExpiresAt}
}

// lastEnding is what became of the one sandbox of an attempt.
func lastEnding(all iter.Seq[sandbox.Ending], a Attempt) sandbox.Ending {
	out := sandbox.Ending{Ref: a.Ref(), Outcome: sandbox.OutcomeNotAttempted}
	for ending := range all {
		out = ending
	}
	return out
}

// openEnds begins the journal of ends that a task asks for; nil = none is kept.
func (o Options) openEnds(why runs.Origin) runs.Opener {
	if o.BeginEnds == nil {
		return nil
	}
	return func(ctx context.Context, targets []sandbox.Sandbox) *runs.Run { return o.BeginEnds(ctx, why, targets) }
}

// endOrigin is what the journal says of why a task's sandbox is ended.
func (t Task) endOrigin() runs.Origin {
	if t.StopBy != "" {
		return runs.Origin{Verb: runs.VerbStop, Reason: "task " + t.ID + " was stopped: " + t.StopBy}
	}
	reason := "the end of task " + t.ID
	if t.Reason != ReasonNone {
		reason += ": " + string(t.Reason)
	}
	return runs.Origin{Verb: runs.VerbTask, Reason: reason}
}

// recordEndRequests makes an ending use the requests that the task knows of, and record its
// own before it is sent, since the sender may die before the answer comes. A request that
// cannot be recorded is sent nevertheless.
func (r *Runner) recordEndRequests(ctx context.Context, id string, a Attempt, o *fleet.EndOptions) {
	record := func(request sandbox.EndRequest) {
		_, _ = r.o.Ledger.Change(ctx, id, func(t *Task) error { return t.EndAsked(a.N, request) })
	}
	o.Earlier = map[sandbox.Ref]*sandbox.EndRequest{a.Ref(): a.EndRequest}
	o.Before = func(_ context.Context, s sandbox.Sandbox, del bool) error {
		record(sandbox.EndRequest{
			At: time.Now().UTC(), Detail: "no answer is recorded", Delete: del, CreatedAt: s.CreatedAt, StartedAt: s.StartedAt, State: s.State, Node: s.Node,
		})
		return nil
	}
	o.After = func(_ sandbox.Ref, request sandbox.EndRequest) { record(request) }
}

// settleCreate finds out what a create without an answer has made. It searches for the
// nonce until a sandbox is found, or two listings in a row show none after the time in
// which the create could still make one.
func (r *Runner) settleCreate(ctx context.Context, t Task, n int) (Task, error) {
	for failed, empty := 0, 0; ; {
		a := t.Attempts[n-1]
		found, err := r.o.Sandboxes.Labelled(ctx, a.Provider, map[string]string{sandbox.LabelNonce: a.Nonce})
		switch {
		case ctx.Err() != nil:
			return t, ctx.Err()
		case err != nil:
			if failed++; failed > settleTries || !fault.Retryable(err) {
				return t, unverifiedError(t, "it is unknown what the create at "+a.Provider+" created: "+err.Error())
			}
			empty = 0
		case len(found) > 0:
			return r.changeTask(ctx, t.ID, func(task *Task) error { return task.Found(n, found[0].ID) })
		case r.createSettled(a, t):
			if empty++; empty > 1 {
				return r.changeTask(ctx, t.ID, func(task *Task) error { return task.recordNothingMade(n) })
			}
		}
		if err := poll.Sleep(ctx, SettleLook); err != nil {
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

// createSettled reports whether the create of an attempt can make nothing any more. An
// API may process a request for SettleTime after its sender has given up. For the request
// of another process the time counts from when that process lost the right to send it,
// and includes the lease within which it notices, unless it was known to be dead.
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
