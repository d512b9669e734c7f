package fleet

import (
	"context"
	"fmt"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// awaitEnd reads the sandbox again until its end is seen or Wait has passed: at once, since
// many ends are complete when the request returns, or after the shortest time that other
// ends of the run took; then at growing intervals. The pauses hold no slot.
//
// back says that a sandbox that was missing before any request is there: nothing has asked it to end.
func (e *termination) awaitEnd(ctx context.Context) (out sandbox.Ending, back bool) {
	began := time.Now()
	deadline := began.Add(e.o.Wait)
	var last sandbox.Sandbox
	var err error
	pause := e.endRun.firstDelay()
	for pauses := e.f.readPauses(); ; pause = pauses.Next() {
		if poll.Sleep(ctx, min(pause, max(0, time.Until(deadline)))) != nil {
			return e.interruptedOutcome(ctx), false
		}
		done, ok := e.endRun.beginRead(ctx)
		if !ok {
			return e.interruptedOutcome(ctx), false
		}
		var looked time.Time
		last, looked, err = e.endRun.timedGet(ctx, e.target.ID, callWithoutBreaker)
		if err == nil {
			e.noteEndShown(last)
			deadline = e.ownDeadline(began, deadline, last)
		}
		over := e.endShown(last, err)
		e.endRun.recordRead(looked.Sub(began), over)
		var p proofResult
		if over {
			p = e.proveEnd(ctx, err != nil)
		} else {
			e.endSeenAt = time.Time{} // what a read has shown before was not the end
		}
		done()
		if e.missingReason != "" && err == nil && !over && last.State != sandbox.StateTerminating && !e.o.VerifyOnly && !e.sent {
			return sandbox.Ending{}, true
		}
		if out, settled := e.outcomeOfRead(ctx, endRead{last, err, over, p, began}, deadline); settled {
			return out, false
		}
	}
}

const (
	// graceMargin is how long after its own grace the end of a sandbox may take to be seen.
	graceMargin = 15 * time.Second
	// maxGraceWait bounds the wait for a grace that the caller's does not reach.
	maxGraceWait = 2 * time.Minute
)

// endsBy is until when, by this machine's clock, a sandbox that is terminating may take by its own grace; zero = it is
// not known.
func endsBy(s sandbox.Sandbox) time.Time {
	if s.EndsBy.IsZero() || s.State != sandbox.StateTerminating {
		return time.Time{}
	}
	return s.EndsBy.Add(max(0, -s.ClockSkew) + graceMargin)
}

// ownDeadline is the deadline where the caller has set none: a sandbox may have a grace of its own, which the request
// does not shorten.
func (e *termination) ownDeadline(began, deadline time.Time, now sandbox.Sandbox) time.Time {
	at := endsBy(now)
	if !e.o.ownGrace || at.IsZero() {
		return deadline
	}
	own := time.Now().Add(at.Sub(e.f.o.Now()))
	if longest := began.Add(maxGraceWait); own.After(longest) {
		own = longest
	}
	if own.After(deadline) {
		return own
	}
	return deadline
}

// endRead is a read of what is to end: what it gave, and whether that shows the end and proves it.
type endRead struct {
	last  sandbox.Sandbox
	err   error
	over  bool
	proof proofResult
	began time.Time // the wait
}

// outcomeOfRead is the outcome that a read has settled; false = it is read again.
func (e *termination) outcomeOfRead(ctx context.Context, r endRead, deadline time.Time) (sandbox.Ending, bool) {
	late := !time.Now().Before(deadline)
	switch {
	case r.proof.ended:
		return e.verifiedOutcome(r.last, r.err, r.proof), true
	case r.over && ctx.Err() != nil:
		return e.interruptedOutcome(ctx), true
	case r.over && (r.proof.final || late):
		return e.newOutcome(sandbox.OutcomeAccepted, "accepted, but not verified: "+e.unprovedReason, e.existence...), true
	case r.over: // its proof may follow
		return sandbox.Ending{}, false
	case r.err != nil && ctx.Err() != nil:
		return e.interruptedOutcome(ctx), true
	case r.err != nil && !fault.Retryable(r.err) && fault.KindOf(r.err) != fault.KindUnknown, late:
		return e.unseenOutcome(ctx, r.began, r.last, r.err), true
	}
	return sandbox.Ending{}, false
}

// endShown reports whether a read shows the end. With Delete nothing may be left. `stopped`
// is the end where it can only be due to the request.
func (e *termination) endShown(now sandbox.Sandbox, err error) bool {
	switch kind := fault.KindOf(err); {
	case kind == fault.KindGone:
		return true
	case kind == fault.KindNotFound:
		return len(e.existence) > 0
	case err != nil, e.o.Delete:
		return false
	}
	return now.State.Ended() || (now.State == sandbox.StateStopped && e.target.State != sandbox.StateStopped)
}

// proofResult is the result of one attempt to prove an end.
type proofResult struct {
	ended    bool
	final    bool   // another attempt has the same result
	remark   string // what has to be known of the end
	evidence []sandbox.Evidence
}

// proveEnd looks beyond the read that showed the end, where the provider can: an API may
// lose the record of a sandbox that still runs. missing says that the read found no record,
// as opposed to a record of the end.
func (e *termination) proveEnd(ctx context.Context, missing bool) proofResult {
	v, ok := providers.As[providers.Verifier](e.endRun.m.Provider)
	if !ok {
		return proofResult{ended: true}
	}
	if e.endSeenAt.IsZero() {
		e.endSeenAt = e.f.o.Now()
	}
	request, _ := e.lastRequest(ctx) // absenceUnproved reports its error
	expires := expiry(e.target)
	if request != nil && request.ExpiresAt.After(expires) {
		expires = request.ExpiresAt
	}
	proof, err := callWithoutBreaker(ctx, e.endRun.m, "verify "+e.target.ID, func(ctx context.Context) (providers.Proof, error) {
		return v.VerifyEnd(ctx, e.target.ID, providers.EndQuery{Delete: e.o.Delete, Since: e.endSeenAt, Now: e.f.o.Now(), Request: request, ExpiresAt: expires})
	})
	switch {
	case err != nil:
		e.unprovedReason = err.Error()
	case proof.Ended != sandbox.True:
		e.unprovedReason = proof.Reason
	case missing:
		var final bool
		if e.unprovedReason, final = e.absenceUnproved(ctx, proof); e.unprovedReason != "" {
			return proofResult{final: final}
		}
		fallthrough
	default:
		return proofResult{ended: true, remark: proof.Reason, evidence: proof.Evidence}
	}
	return proofResult{}
}

func (e *termination) verifiedOutcome(now sandbox.Sandbox, err error, p proofResult) sandbox.Ending {
	seen := e.providerEvidence("state", string(now.State))
	if err != nil {
		seen = e.providerEvidence("get", string(fault.KindOf(err)))
	}
	return e.newOutcome(sandbox.OutcomeVerified, p.remark, append(append(e.existence, seen), p.evidence...)...)
}

// unseenOutcome is the outcome of a request that was accepted without an observed end.
func (e *termination) unseenOutcome(ctx context.Context, began time.Time, last sandbox.Sandbox, err error) sandbox.Ending {
	wait := e.o.Wait
	if e.o.ownGrace {
		wait = max(wait, time.Since(began).Truncate(time.Second))
	}
	waited := sandbox.FormatDuration(wait)
	switch at := endsBy(last); {
	case fault.KindOf(err) == fault.KindNotFound:
		return e.failedOutcome(err) // accepted, but nothing shows that it ever existed
	case err != nil:
		return e.newOutcome(sandbox.OutcomeAccepted, fmt.Sprintf("accepted, but the end cannot be verified: %v", err))
	case e.f.o.Now().Before(at):
		return e.newOutcome(
			sandbox.OutcomeAccepted, "accepted: it is still terminating, as its own grace lets it; look again at "+at.UTC().Format(time.RFC3339),
			e.providerEvidence("state", string(last.State)),
		)
	case last.State == sandbox.StateTerminating:
		return e.newOutcome(sandbox.OutcomeStuck, "still terminating after "+waited+e.keptBy(ctx), e.providerEvidence("state", string(last.State)))
	case last.State.Ended():
		return e.newOutcome(
			sandbox.OutcomeAccepted, "it has ended, but the provider still keeps its data after "+waited, e.providerEvidence("state", string(last.State)),
		)
	}
	return e.newOutcome(
		sandbox.OutcomeAccepted, fmt.Sprintf("accepted but still %s after %s%s", last.State, waited, e.keptBy(ctx)),
		e.providerEvidence("state", string(last.State)),
	)
}

// keptBy is what keeps a sandbox that is terminating, as the end of a reason; "" where the provider cannot tell.
func (e *termination) keptBy(ctx context.Context) string {
	v, ok := providers.As[providers.Verifier](e.endRun.m.Provider)
	if !ok {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // Wait is over
	defer cancel()
	proof, err := callWithoutBreaker(ctx, e.endRun.m, "verify "+e.target.ID, func(ctx context.Context) (providers.Proof, error) {
		return v.VerifyEnd(ctx, e.target.ID, providers.EndQuery{Delete: e.o.Delete, Since: e.f.o.Now(), Now: e.f.o.Now(), Request: e.request})
	})
	if err != nil || proof.KeptBy == "" {
		return ""
	}
	return ": " + proof.KeptBy
}

// interruptedOutcome is the outcome of an accepted request when ctx ended.
func (e *termination) interruptedOutcome(ctx context.Context) sandbox.Ending {
	out := e.newOutcome(sandbox.OutcomeAccepted, fmt.Sprintf("accepted, but no longer watched: %v", context.Cause(ctx)))
	out.Err = e.endRun.m.asFault(ctx, ctx.Err(), "terminate "+e.target.ID)
	return out
}

// Goal is the state that Wait waits for.
type Goal string

// The goals of `sbx wait --for`.
const (
	GoalEnded   Goal = "ended"
	GoalRunning Goal = "running"
)

// Goals lists every goal.
func Goals() []Goal { return []Goal{GoalEnded, GoalRunning} }

// Wait reads a sandbox, at the intervals of Options.Poll, until it has reached the goal, and
// returns it. One that disappears has ended: its last description is returned as terminated,
// with raw state "gone".
//
// A sandbox that ended before it ran is fault.KindUnverified; one that never existed is
// KindNotFound. Failed reads are repeated until the provider has given no answer for its
// timeout.
func (f *Fleet) Wait(ctx context.Context, ref sandbox.Ref, goal Goal) (sandbox.Sandbox, error) {
	m, err := f.findMember(ref.Provider)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	last := sandbox.Sandbox{Provider: ref.Provider, ProviderType: m.Provider.Type(), ID: ref.ID}
	lastAnswer := time.Now()
	for pauses := f.readPauses(); ; {
		now, confirmed, err := f.readConfirmed(ctx, m, last)
		last = now
		switch {
		case err == nil:
			lastAnswer = time.Now()
		case ctx.Err() != nil, !fault.Retryable(err), time.Since(lastAnswer) >= m.Timeout:
			return last, err
		}
		if done, err := goalReached(last, goal); done && confirmed || err != nil {
			return last, err
		}
		if poll.Sleep(ctx, pauses.Next()) != nil {
			return last, m.asFault(ctx, ctx.Err(), "wait "+ref.ID+" (it is "+string(last.State)+")")
		}
	}
}

// readConfirmed reads a sandbox that was last read as last. An end that the read shows has to be confirmed by the list;
// one that it does not find any more has to be proved.
func (f *Fleet) readConfirmed(ctx context.Context, m *member, last sandbox.Sandbox) (now sandbox.Sandbox, confirmed bool, err error) {
	now, err = m.getWithoutBreaker(ctx, last.ID)
	switch {
	case showsAbsence(err) && (last.State != "" || fault.KindOf(err) == fault.KindGone):
		if err := f.proveAbsence(ctx, m, last, "wait"); err != nil {
			return last, false, err
		}
		last.State, last.RawState = sandbox.StateTerminated, "gone"
		return last, true, nil
	case err != nil:
		return last, false, err
	case now.State.Ended():
		confirmed, err = m.listConfirms(ctx, now.ID)
		return now, confirmed, err
	}
	return now, true, nil
}

func goalReached(s sandbox.Sandbox, goal Goal) (bool, error) {
	switch {
	case goal == GoalEnded:
		return s.State.Ended(), nil
	case s.State == sandbox.StateRunning:
		return true, nil
	case s.State.Ended():
		return false, fault.New(fault.KindUnverified, "it is %s and will not run", s.State).At(s.Provider, "wait "+s.ID).
			WithHint("`sbx inspect %s` shows how it ended", s.Ref())
	}
	return false, nil
}

func (f *Fleet) readPauses() *poll.Backoff { return poll.NewBackoff(f.o.Poll.Min, f.o.Poll.Max) }
