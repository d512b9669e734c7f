package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sbx/internal/fault"
	"sbx/internal/policy"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// end is the ending of one sandbox.
type end struct {
	f       *Fleet
	line    *line
	target  sandbox.Sandbox
	o       EndOptions
	began   time.Time
	proof   []sandbox.Evidence // that it existed
	seen    time.Time          // when it was read before the request; zero = it was not
	sent    bool               // this run has sent a request that may have had an effect
	kept    *kept              // requests of earlier runs
	journal EndJournal
	// request is the last request to end it that is known; nil = none yet.
	request *sandbox.EndRequest
	since   time.Time // when a read first showed the end
	doubt   string    // why an end that a read showed is not proved
	gone    string    // how it went without being asked; its end is still to be proved
	heard   bool      // a request from before is at work
	leave   func()    // lets the next one ask
}

// run takes the sandbox through its stages; a stage that has the outcome ends
// it.
func (e *end) run(ctx context.Context) sandbox.Ending {
	if e.o.Record.Earlier != nil {
		e.request = e.o.Record.Earlier(e.target.Ref())
	}
	if e.target.State != "" {
		e.proof = []sandbox.Evidence{{What: "state", Value: string(e.target.State), Source: "read earlier in this run", At: e.f.o.Now()}}
	}
	for _, stage := range []func(context.Context) (sandbox.Ending, bool){e.prepare, e.look, e.ask} {
		if out, over := stage(ctx); over {
			return out
		}
		if e.gone != "" || e.heard {
			break
		}
	}
	e.leave()
	if e.sent {
		e.journal.Answer(e.target.Ref(), *e.request)
	}
	if e.o.Record.AfterRequest != nil && e.sent {
		e.o.Record.AfterRequest(e.target.Ref(), *e.request)
	}
	out := e.verify(ctx)
	if e.gone != "" {
		return e.went(out)
	}
	return out
}

// went is the outcome of what was not found and not ended by this run: gone where
// its end is proved, else failed.
func (e *end) went(out sandbox.Ending) sandbox.Ending {
	if out.Outcome == sandbox.OutcomeVerified {
		out.Outcome, out.Reason = sandbox.OutcomeAlreadyGone, e.gone
		return out
	}
	why := cmp.Or(e.doubt, out.Reason)
	if e.request.Unconfirmed() && out.Outcome == sandbox.OutcomeAccepted {
		out.Reason = "asked to end before, and its end is not proved: " + why
		return out
	}
	out.Outcome, out.Reason = sandbox.OutcomeFailed, "a read did not find it, and its end is not proved: "+why
	if out.Err == nil {
		out.Err = fault.New(fault.KindUnverified, "%s", out.Reason).At(e.target.Provider, "terminate "+e.target.ID)
	}
	return out
}

// prepare lets the caller take what it needs while the sandbox is there.
func (e *end) prepare(ctx context.Context) (sandbox.Ending, bool) {
	if e.o.Recheck.Prepare == nil {
		return sandbox.Ending{}, false
	}
	e.o.Recheck.Prepare(ctx, e.target)
	if ctx.Err() != nil {
		return e.notAttempted(ctx), true
	}
	return sandbox.Ending{}, false
}

// look reads the sandbox just before it is asked to end.
func (e *end) look(ctx context.Context) (sandbox.Ending, bool) {
	if e.o.VerifyOnly || e.o.Recheck.Skip != "" {
		return sandbox.Ending{}, false
	}
	now, err := e.line.get(ctx, e.target.ID)
	if err == nil {
		e.seen = time.Now()
		e.o.Delete = e.o.Delete || now.State == sandbox.StateFailed && e.line.m.endsFailed()
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return e.notAttempted(ctx), true
	case errors.Is(err, policy.ErrOpen):
		return e.leftAlone(err), true
	case errors.Is(err, providers.ErrUnreadable) && e.o.Delete && e.mayBeUnreadable():
		now = e.target // there is nothing else to judge by
	case errors.Is(err, providers.ErrUnreadable) && e.o.Delete:
		return e.failed(fault.New(fault.KindOf(err), "%w: it was not deleted", err).At(e.target.Provider, "terminate "+e.target.ID).
			WithHint("`sbx terminate %s --delete`, typed with the whole reference, deletes what cannot be read", e.target.Ref())), true
	case err != nil:
		return e.missing(ctx, "get", err)
	case now.State.Ended() && !e.o.Delete:
		return e.out(sandbox.OutcomeAlreadyGone, "it had ended before", e.fact("state", string(now.State))), true
	case now.State == sandbox.StateStopped && !e.o.Delete && e.target.State != "" && e.target.State != sandbox.StateStopped:
		return e.out(sandbox.OutcomeAlreadyGone, "it had stopped before", append(e.proof, e.fact("state", string(now.State)))...), true
	case now.State == sandbox.StateStopped && !e.o.Delete:
		out := e.out(sandbox.OutcomeSkipped, "needs_delete: it is stopped, and only a delete goes further", e.fact("state", string(now.State)))
		out.Err = fault.New(fault.KindRefused, "%s", out.Reason).At(e.target.Provider, "terminate "+e.target.ID).
			WithHint("`sbx terminate %s --delete` destroys what is kept of it", e.target.Ref())
		return out, true
	case replaced(e.target, now):
		return e.out(sandbox.OutcomeChanged, "another sandbox has its id now", e.fact("created_at", now.CreatedAt.UTC().Format(time.RFC3339))), true
	}
	e.heard = e.o.Recheck.AlreadyAsked != nil && e.o.Recheck.AlreadyAsked(now)
	if e.o.Recheck.Judge != nil && !e.heard {
		if outcome, reason := e.o.Recheck.Judge(now); outcome != "" {
			out := e.out(outcome, reason, e.fact("state", string(now.State)))
			if outcome == sandbox.OutcomeNotAttempted {
				out.Err = fault.New(fault.KindUnavailable, "%s", reason).At(e.target.Provider, "terminate "+e.target.ID)
			}
			return out, true
		}
	}
	e.target, e.proof = now, []sandbox.Evidence{e.fact("state", string(now.State))}
	return sandbox.Ending{}, false
}

// mayBeUnreadable says that a delete of this target may go on without its record.
func (e *end) mayBeUnreadable() bool {
	return e.o.Recheck.AllowUnreadable != nil && e.o.Recheck.AllowUnreadable(e.target)
}

// replaced says that an id has been given to another sandbox.
func replaced(before, now sandbox.Sandbox) bool {
	return !before.CreatedAt.IsZero() && !now.CreatedAt.IsZero() && !before.CreatedAt.Equal(now.CreatedAt)
}

// ask sends the request, once. An error that leaves its effect open is settled
// by one look.
func (e *end) ask(ctx context.Context) (sandbox.Ending, bool) {
	if e.o.VerifyOnly {
		return sandbox.Ending{}, false
	}
	if e.o.Record.BeforeRequest != nil {
		if err := e.o.Record.BeforeRequest(ctx, e.target); err != nil && ctx.Err() == nil {
			return e.failed(err), true
		}
		if ctx.Err() != nil {
			return e.notAttempted(ctx), true
		}
	}
	e.journal.Intent(e.target, e.o.Delete)
	sent, before := false, e.request
	err := e.line.terminate(ctx, e.target.ID, func() providers.TerminateOptions {
		sent = true
		e.sending()
		e.f.tell(e.target.Ref(), "terminate", e.o.By)
		return e.how()
	})
	e.answered(before, err)
	switch kind := fault.KindOf(err); {
	case err == nil:
		return sandbox.Ending{}, false
	case errors.Is(err, policy.ErrOpen):
		return e.leftAlone(err), true
	case !sent:
		return e.notAttempted(ctx), true
	case kind == fault.KindGone, kind == fault.KindNotFound:
		return e.missing(ctx, "terminate", err)
	case kind == fault.KindRefused:
		out := e.out(sandbox.OutcomeSkipped, err.Error())
		out.Err = err // for its hint
		return out, true
	case ctx.Err() == nil && openEnded(err):
		return e.settle(ctx, err)
	}
	return e.failed(err), true
}

// fresh is how old a read may be that a provider goes by instead of its own. What
// lies between them is one line in a journal; a slow disk makes it look again.
const fresh = 250 * time.Millisecond

// how is what is asked, with what is known right now.
func (e *end) how() providers.TerminateOptions {
	o := providers.TerminateOptions{Delete: e.o.Delete, Grace: e.o.Grace, Patient: e.o.Patient, By: e.o.By}
	if !e.seen.IsZero() && time.Since(e.seen) <= fresh {
		o.Seen = &e.target
	}
	return o
}

// settle looks once at what a failed request has done.
func (e *end) settle(ctx context.Context, asked error) (sandbox.Ending, bool) {
	now, _, err := e.line.again(ctx, e.target.ID)
	if err == nil {
		e.underWay(now)
	}
	if e.over(now, err) || !e.request.Unconfirmed() {
		return sandbox.Ending{}, false // the end is there to be verified
	}
	return e.failed(asked), true
}

// missing is the outcome when a call found nothing: already_gone with evidence
// that it existed, else failed. Other errors are failures. A 404 proves no end where
// the provider knows a better proof: then that is still to be seen, and so it is of a
// 410 where a request to end it may have been refused.
func (e *end) missing(ctx context.Context, what string, err error) (sandbox.Ending, bool) {
	const went = "it went before it was asked to"
	_, provable := providers.As[providers.Verifier](e.line.m.Provider)
	request, unread := e.lastRequest(ctx)
	if request != nil && len(e.proof) == 0 {
		e.proof = []sandbox.Evidence{{What: "asked to end", Value: cmp.Or(request.Detail, "acknowledged"), Source: "an earlier run", At: request.At}}
	}
	switch kind := fault.KindOf(err); {
	case kind == fault.KindGone && provable && (request.Unconfirmed() || unread != nil):
		e.gone = went
		return sandbox.Ending{}, false
	case kind == fault.KindGone:
		return e.out(sandbox.OutcomeAlreadyGone, "it was gone before", append(e.proof, e.fact(what, string(kind)))...), true
	case kind == fault.KindNotFound && len(e.proof) > 0 && provable:
		e.gone = went
		return sandbox.Ending{}, false
	case kind == fault.KindNotFound && len(e.proof) > 0:
		return e.out(sandbox.OutcomeAlreadyGone, went, append(e.proof, e.fact(what, string(kind)))...), true
	}
	return e.failed(err), true
}

// notAttempted is the outcome when ctx ended before anything was asked.
func (e *end) notAttempted(ctx context.Context) sandbox.Ending {
	out := e.out(sandbox.OutcomeNotAttempted, "")
	out.Err = e.line.m.fault(ctx, ctx.Err(), "terminate "+e.target.ID)
	out.Reason = fmt.Sprintf("not asked: %v", context.Cause(ctx))
	return out
}

// leftAlone is the outcome when the breaker is open: nothing was asked.
func (e *end) leftAlone(err error) sandbox.Ending {
	out := e.out(sandbox.OutcomeNotAttempted, "not asked: "+policy.ErrOpen.Error())
	out.Err = fault.New(fault.KindUnavailable, "%w", err).At(e.target.Provider, "terminate "+e.target.ID).WithHint("%s", fault.HintOf(err))
	return out
}

func (e *end) failed(err error) sandbox.Ending {
	out := e.out(sandbox.OutcomeFailed, err.Error())
	out.Err = err
	return out
}

func (e *end) out(outcome sandbox.Outcome, reason string, evidence ...sandbox.Evidence) sandbox.Ending {
	return sandbox.Ending{
		Ref: e.target.Ref(), Outcome: outcome, Reason: reason,
		Duration: time.Since(e.began), Evidence: evidence, Request: e.request,
	}
}

func (e *end) fact(what, value string) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: value, Source: e.target.Provider, At: e.f.o.Now()}
}
