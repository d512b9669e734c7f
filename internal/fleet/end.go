package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sbx/internal/fault"
	"sbx/internal/policy"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// termination ends one sandbox.
type termination struct {
	f              *Fleet
	endRun         *endRun
	target         sandbox.Sandbox
	o              EndOptions
	beganAt        time.Time
	existence      []sandbox.Evidence  // that it existed
	readAt         time.Time           // of the read before the request; zero = it was not read
	sent           bool                // this run has sent a request that may have had an effect
	earlier        *requestCache       // requests of earlier runs
	request        *sandbox.EndRequest // the last known request to end it; nil = none
	endSeenAt      time.Time           // when a read first showed the end
	unprovedReason string              // why an end that a read showed is not proved
	missingReason  string              // why it was missing before the request; its end is still to be proved
	alreadyAsked   bool                // an earlier request is in progress
	ownEarlier     bool                // the caller's own earlier request was acknowledged: an end that is found is its effect
	insist         bool                // the list contradicts a read that showed an end
	endTurn        func()              // lets the next target send its request
}

// takeEarlier takes the last request to end the target that was sent before this run.
func (e *termination) takeEarlier() {
	if r := e.o.Earlier[e.target.Ref()]; r.Sent() {
		e.request, e.ownEarlier = r, r.Acknowledged
	}
}

// runStages runs the stages in order until one of them has the outcome, then waits for
// the end.
func (e *termination) runStages(ctx context.Context) sandbox.Ending {
	e.takeEarlier()
	if e.target.State != "" {
		e.existence = []sandbox.Evidence{{What: "state", Value: string(e.target.State), Source: "read earlier in this run", At: e.f.o.Now()}}
	}
	stages := []func(context.Context) (sandbox.Ending, bool){e.prepareTarget, e.recheckTarget, e.sendRequest}
	for again := false; ; again, stages = true, stages[1:] {
		for _, stage := range stages {
			if out, over := stage(ctx); over {
				return out
			}
			if e.missingReason != "" || e.alreadyAsked {
				break
			}
		}
		e.endTurn()
		if e.sent {
			e.tellAnswer(*e.request)
		}
		out, back := e.awaitEnd(ctx)
		switch {
		case back && !again: // what was missing is there: it has to be asked
			e.missingReason = ""
		case e.missingReason != "":
			return e.missingOutcome(out)
		default:
			return out
		}
	}
}

// missingOutcome is the outcome of a sandbox that was missing before this run ended it:
// already gone where its end is proved, else failed.
func (e *termination) missingOutcome(out sandbox.Ending) sandbox.Ending {
	if out.Outcome == sandbox.OutcomeVerified {
		proved := e.newOutcome(sandbox.OutcomeAlreadyGone, e.missingReason)
		out.Outcome, out.Reason = proved.Outcome, proved.Reason
		return out
	}
	why := cmp.Or(e.unprovedReason, out.Reason)
	if e.request.Unconfirmed() && out.Outcome == sandbox.OutcomeAccepted {
		what := "an earlier request to end it is not verified: "
		if e.request.NotFound {
			what = "the request to end it found no such sandbox, which is not verified: "
		}
		out.Reason = what + why
		return out
	}
	out.Outcome, out.Reason = sandbox.OutcomeFailed, "a read did not find it, but its end is not verified: "+why
	if out.Err == nil {
		out.Err = fault.New(fault.KindUnverified, "%s", out.Reason).At(e.target.Provider, "terminate "+e.target.ID)
	}
	return out
}

// prepareTarget calls the caller's Prepare while the sandbox still exists.
func (e *termination) prepareTarget(ctx context.Context) (sandbox.Ending, bool) {
	if e.o.Recheck.Prepare == nil {
		return sandbox.Ending{}, false
	}
	e.o.Recheck.Prepare(ctx, e.target)
	if ctx.Err() != nil {
		return e.notAttempted(ctx), true
	}
	return sandbox.Ending{}, false
}

func (e *termination) recheckTarget(ctx context.Context) (sandbox.Ending, bool) {
	if e.o.VerifyOnly || e.o.Recheck.Skip != "" {
		return sandbox.Ending{}, false
	}
	now, _, err := e.endRun.timedGet(ctx, e.target.ID, callInSlot)
	if ctx.Err() == nil {
		now, err = e.corroborate(ctx, now, err)
	}
	if err == nil {
		e.readAt = time.Now()
		e.o.Delete = e.o.Delete || now.State == sandbox.StateFailed && e.endRun.m.endsFailed()
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return e.notAttempted(ctx), true
	case errors.Is(err, policy.ErrOpen):
		return e.breakerOutcome(err), true
	case errors.Is(err, providers.ErrUnreadable) && e.o.Delete && e.mayBeUnreadable():
		now = e.target // the record cannot be read
	case errors.Is(err, providers.ErrUnreadable) && e.o.Delete:
		return e.failedOutcome(fault.New(fault.KindOf(err), "%w: it was not deleted", err).At(e.target.Provider, "terminate "+e.target.ID).
			WithHint("`sbx terminate %s --delete`, typed with the whole reference, deletes what cannot be read", e.target.Ref())), true
	case err != nil:
		return e.outcomeIfMissing(ctx, "get", err)
	case replaced(e.target, now):
		return e.newOutcome(
			sandbox.OutcomeChanged, "another sandbox has this id now", e.providerEvidence("created_at", now.CreatedAt.UTC().Format(time.RFC3339)),
		), true
	case e.insist: // its end is not believed
	case now.State.Ended() && !e.o.Delete:
		return e.newOutcome(sandbox.OutcomeAlreadyGone, "it had ended before", e.providerEvidence("state", string(now.State))), true
	case now.State == sandbox.StateStopped && !e.o.Delete && e.target.State != "" && e.target.State != sandbox.StateStopped:
		return e.newOutcome(sandbox.OutcomeAlreadyGone, "it had stopped before", append(e.existence, e.providerEvidence("state", string(now.State)))...), true
	case now.State == sandbox.StateStopped && !e.o.Delete:
		out := e.newOutcome(sandbox.OutcomeSkipped, "needs_delete: it is stopped; only --delete removes it", e.providerEvidence("state", string(now.State)))
		out.Err = fault.New(fault.KindRefused, "%s", out.Reason).At(e.target.Provider, "terminate "+e.target.ID).
			WithHint("`sbx terminate %s --delete` deletes what the provider keeps of it", e.target.Ref())
		return out, true
	}
	if out, kept := e.judgeRead(now); kept {
		return out, true
	}
	e.target, e.existence = now, []sandbox.Evidence{e.providerEvidence("state", string(now.State))}
	return sandbox.Ending{}, false
}

// judgeRead lets the caller judge what was read; true = the sandbox stays. What an earlier request
// has begun to end is not judged again.
func (e *termination) judgeRead(now sandbox.Sandbox) (sandbox.Ending, bool) {
	asked := e.o.Recheck.AlreadyAsked != nil && e.o.Recheck.AlreadyAsked(now)
	e.alreadyAsked = asked && !e.repeats(now)
	if e.o.Recheck.Judge == nil || asked {
		return sandbox.Ending{}, false
	}
	outcome, reason := e.o.Recheck.Judge(now)
	if outcome == "" {
		return sandbox.Ending{}, false
	}
	out := e.newOutcome(outcome, reason, e.providerEvidence("state", string(now.State)))
	if outcome == sandbox.OutcomeNotAttempted {
		out.Err = fault.New(fault.KindUnavailable, "%s", reason).At(e.target.Provider, "terminate "+e.target.ID)
	}
	return out, true
}

// repeats reports whether the earlier request is sent once more: nobody acknowledged it, so that
// without another answer no later read could prove the end.
func (e *termination) repeats(now sandbox.Sandbox) bool {
	return e.request.Unconfirmed() && !e.request.Again && e.o.Recheck.MayRepeat != nil && e.o.Recheck.MayRepeat(now)
}

// mayBeUnreadable reports whether a delete of this target may proceed without its record.
func (e *termination) mayBeUnreadable() bool {
	return e.o.Recheck.AllowUnreadable != nil && e.o.Recheck.AllowUnreadable(e.target)
}

// replaced reports whether the id now belongs to another sandbox.
func replaced(before, now sandbox.Sandbox) bool {
	return !before.CreatedAt.IsZero() && !now.CreatedAt.IsZero() && !before.CreatedAt.Equal(now.CreatedAt)
}

// sendRequest sends the request once. After an error with an unknown effect, one read
// decides.
func (e *termination) sendRequest(ctx context.Context) (sandbox.Ending, bool) {
	if e.o.VerifyOnly {
		return sandbox.Ending{}, false
	}
	var sent bool
	var err error
	for began, pauses := time.Now(), poll.NewBackoff(time.Second, resendPatience); ; {
		if out, over := e.recordIntent(ctx); over {
			return out, true
		}
		sent, err = e.callTerminate(ctx)
		if !nothingSent(err) || !fault.Retryable(err) || time.Since(began) >= resendPatience || poll.Sleep(ctx, pauses.Next()) != nil {
			break
		}
	}
	if showsAbsence(err) && !e.insist && e.listContradicts(ctx) {
		e.insist = true
		if again, second := e.callTerminate(ctx); again {
			err = second
		}
	}
	switch kind := fault.KindOf(err); {
	case err == nil:
		return sandbox.Ending{}, false
	case errors.Is(err, policy.ErrOpen):
		return e.breakerOutcome(err), true
	case !sent, nothingSent(err) && ctx.Err() != nil:
		return e.notAttempted(ctx), true
	case nothingSent(err) && fault.Retryable(err):
		return e.failedOutcome(fault.New(kind, "nothing was sent to end it: %w", err).At(e.target.Provider, "terminate "+e.target.ID).WithHint("try again")), true
	case showsAbsence(err):
		return e.outcomeIfMissing(ctx, "terminate", err)
	case kind == fault.KindRefused && !providers.Answered(err): // by its provider here, which has not asked for it
		out := e.newOutcome(sandbox.OutcomeSkipped, err.Error())
		out.Err = err // for its hint
		return out, true
	case ctx.Err() == nil && effectUnknown(err):
		return e.settleRequest(ctx, err)
	}
	return e.failedOutcome(err), true
}

// resendPatience is how long a request is tried again that has not left this machine: what restarts is back in seconds.
// Its four tries alone open no breaker.
const resendPatience = 7 * time.Second

// recordIntent records that the request is about to be sent.
func (e *termination) recordIntent(ctx context.Context) (sandbox.Ending, bool) {
	if e.o.Before != nil {
		if err := e.o.Before(ctx, e.target, e.o.Delete); err != nil && ctx.Err() == nil {
			return e.failedOutcome(err), true
		}
		if ctx.Err() != nil {
			return e.notAttempted(ctx), true
		}
	}
	return sandbox.Ending{}, false
}

// tellAnswer gives the caller what is known of the request.
func (e *termination) tellAnswer(r sandbox.EndRequest) {
	if e.o.After != nil {
		e.o.After(e.target.Ref(), r)
	}
}

// callTerminate sends the request; sent = it may have had an effect.
func (e *termination) callTerminate(ctx context.Context) (sent bool, err error) {
	before := e.request
	err = e.endRun.sendTerminate(ctx, e.target.ID, func() providers.TerminateOptions {
		sent = true
		e.noteSending()
		e.f.recordEvent(e.target.Ref(), "terminate", e.o.By)
		return e.requestOptions()
	})
	e.noteAnswer(before, err)
	if sent && before == nil && showsAbsence(err) {
		e.noteDeletedBefore(ctx)
	}
	return sent, err
}

// noteDeletedBefore is for a request that found no such sandbox: where an acknowledged delete is stored, by a create
// that has undone itself or by another process, that one has ended it.
func (e *termination) noteDeletedBefore(ctx context.Context) {
	r, err := e.earlier.find(ctx, e.target.Ref())
	if err == nil && r.Sent() && r.Acknowledged && r.Delete && !replaced(sandbox.Sandbox{CreatedAt: r.CreatedAt}, e.target) {
		e.sent, e.request = true, r
	}
}

// maxReadAge is the age up to which a provider may use the read before the request in place
// of its own. Only a journal line is written between them; a slow disk causes a new read.
const maxReadAge = 250 * time.Millisecond

// requestOptions are the options of the request at the time of sending.
func (e *termination) requestOptions() providers.TerminateOptions {
	o := providers.TerminateOptions{Delete: e.o.Delete, Grace: e.o.Grace, FullGrace: e.o.FullGrace, By: e.o.By, Insist: e.insist}
	if e.insist || !e.readAt.IsZero() && time.Since(e.readAt) <= maxReadAge {
		o.Seen = &e.target
	}
	return o
}

// settleRequest reads once what a failed request has done.
func (e *termination) settleRequest(ctx context.Context, asked error) (sandbox.Ending, bool) {
	now, _, err := e.endRun.timedGet(ctx, e.target.ID, callWithoutBreaker)
	if err == nil {
		e.noteEndShown(now)
	}
	if e.endShown(now, err) || !e.request.Unconfirmed() {
		return sandbox.Ending{}, false // the end is to be verified
	}
	return e.failedOutcome(asked), true
}

// outcomeIfMissing is the outcome of a call that found nothing: already_gone with evidence
// that the sandbox existed, else failed. Other errors are failures. Where the provider has a
// better proof than a 404 or a 410, that proof is still required.
func (e *termination) outcomeIfMissing(ctx context.Context, what string, err error) (sandbox.Ending, bool) {
	const vanished = "it ended before the request"
	request, _ := e.lastRequest(ctx)
	if request != nil && len(e.existence) == 0 {
		e.existence = []sandbox.Evidence{{What: "end requested", Value: cmp.Or(request.Detail, "acknowledged"), Source: "an earlier run", At: request.At}}
	}
	switch kind := fault.KindOf(err); {
	case e.endRun.m.needsProof() && (kind == fault.KindGone || kind == fault.KindNotFound && len(e.existence) > 0):
		e.missingReason = vanished
		return sandbox.Ending{}, false
	case kind == fault.KindGone || kind == fault.KindNotFound && len(e.existence) > 0:
		return e.newOutcome(sandbox.OutcomeAlreadyGone, vanished, append(e.existence, e.providerEvidence(what, string(kind)))...), true
	}
	return e.failedOutcome(err), true
}

// notAttempted is the outcome when ctx ended before the request.
func (e *termination) notAttempted(ctx context.Context) sandbox.Ending {
	out := e.newOutcome(sandbox.OutcomeNotAttempted, "")
	out.Err = e.endRun.m.asFault(ctx, ctx.Err(), "terminate "+e.target.ID)
	out.Reason = fmt.Sprintf("not requested: %v", context.Cause(ctx))
	return out
}

// breakerOutcome is the outcome when the breaker is open: no request was sent.
func (e *termination) breakerOutcome(err error) sandbox.Ending {
	out := e.newOutcome(sandbox.OutcomeNotAttempted, "not requested: "+policy.ErrOpen.Error())
	out.Err = fault.New(fault.KindUnavailable, "%w", err).At(e.target.Provider, "terminate "+e.target.ID).WithHint("%s", fault.HintOf(err))
	return out
}

func (e *termination) failedOutcome(err error) sandbox.Ending {
	out := e.newOutcome(sandbox.OutcomeFailed, err.Error())
	out.Err = err
	return out
}

func (e *termination) newOutcome(outcome sandbox.Outcome, reason string, evidence ...sandbox.Evidence) sandbox.Ending {
	if outcome == sandbox.OutcomeAlreadyGone && e.ownEarlier {
		outcome, reason = sandbox.OutcomeVerified, "the request before it was cut off has ended it"
	}
	return sandbox.Ending{
		Ref: e.target.Ref(), Outcome: outcome, Reason: reason,
		Duration: time.Since(e.beganAt), Evidence: evidence, Request: e.request,
	}
}

func (e *termination) providerEvidence(what, value string) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: value, Source: e.target.Provider, At: e.f.o.Now()}
}
