package fleet

import (
	"context"
	"fmt"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// verify reads the sandbox again until its end is seen or Wait is over: at once,
// since many ends are over when the request returns, or when the others of the run
// have ended at best; then at a growing pace. The pauses hold no slot.
func (e *end) verify(ctx context.Context) sandbox.Ending {
	began := time.Now()
	deadline := began.Add(e.o.Wait)
	var last sandbox.Sandbox
	var err error
	pause := e.line.firstLook()
	for pace := e.f.pace(); ; pause = pace.next() {
		if !wait(ctx, min(pause, max(0, time.Until(deadline)))) {
			return e.interrupted(ctx)
		}
		done, ok := e.line.look(ctx)
		if !ok {
			return e.interrupted(ctx)
		}
		var looked time.Time
		last, looked, err = e.line.again(ctx, e.target.ID)
		if err == nil {
			e.underWay(last)
		}
		over := e.over(last, err)
		e.line.learn(looked.Sub(began), over)
		var p proved
		if over {
			p = e.prove(ctx, err != nil)
		}
		done()
		switch {
		case p.ended:
			return e.verified(last, err, p.evidence...)
		case over && ctx.Err() != nil:
			return e.interrupted(ctx)
		case over && (p.final || !time.Now().Before(deadline)):
			return e.unproved()
		case over: // its proof may come
		case err != nil && ctx.Err() != nil:
			return e.interrupted(ctx)
		case err != nil && !fault.Retryable(err) && fault.KindOf(err) != fault.KindUnknown:
			return e.unseen(last, err)
		case !time.Now().Before(deadline):
			return e.unseen(last, err)
		}
	}
}

// over says that a read shows the end. With Delete nothing may be left. A
// `stopped` is the end where the request alone could have stopped it.
func (e *end) over(now sandbox.Sandbox, err error) bool {
	switch kind := fault.KindOf(err); {
	case kind == fault.KindGone:
		return true
	case kind == fault.KindNotFound:
		return len(e.proof) > 0
	case err != nil, e.o.Delete:
		return false
	}
	return now.State.Ended() || (now.State == sandbox.StateStopped && e.target.State != sandbox.StateStopped)
}

// proved is what one look for a proof has shown.
type proved struct {
	ended    bool
	final    bool // looking again will show nothing else
	evidence []sandbox.Evidence
}

// prove looks beyond the read that showed the end, where the provider knows how:
// an API may forget a sandbox that runs on. missing says that the read found no
// record, instead of one that tells of the end.
func (e *end) prove(ctx context.Context, missing bool) proved {
	v, ok := providers.As[providers.Verifier](e.line.m.Provider)
	if !ok {
		return proved{ended: true}
	}
	if e.since.IsZero() {
		e.since = e.f.o.Now()
	}
	request, _ := e.lastRequest(ctx) // forgetful tells of one that cannot be read
	proof, err := persist(ctx, e.line.m, "verify "+e.target.ID, func(ctx context.Context) (providers.Proof, error) {
		return v.VerifyEnd(ctx, e.target.ID, providers.EndQuery{Delete: e.o.Delete, Since: e.since, Now: e.f.o.Now(), Request: request})
	})
	switch {
	case err != nil:
		e.doubt = err.Error()
	case proof.Ended != sandbox.True:
		e.doubt = proof.Reason
	case missing:
		if e.doubt = e.forgetful(ctx, proof); e.doubt != "" {
			return proved{final: true}
		}
		fallthrough
	default:
		return proved{ended: true, evidence: proof.Evidence}
	}
	return proved{}
}

// unproved is the outcome of an end that a read showed and nothing proved.
func (e *end) unproved() sandbox.Ending {
	return e.out(sandbox.OutcomeAccepted, "accepted, but its end is not proved: "+e.doubt, e.proof...)
}

func (e *end) verified(now sandbox.Sandbox, err error, proof ...sandbox.Evidence) sandbox.Ending {
	seen := e.fact("state", string(now.State))
	if err != nil {
		seen = e.fact("get", string(fault.KindOf(err)))
	}
	return e.out(sandbox.OutcomeVerified, "", append(append(e.proof, seen), proof...)...)
}

// unseen is the outcome of what was accepted and not seen to end.
func (e *end) unseen(last sandbox.Sandbox, err error) sandbox.Ending {
	waited := sandbox.FormatDuration(e.o.Wait)
	switch {
	case fault.KindOf(err) == fault.KindNotFound:
		return e.failed(err) // accepted, but nothing shows that it ever was
	case err != nil:
		return e.out(sandbox.OutcomeAccepted, fmt.Sprintf("accepted, but its end cannot be seen: %v", err))
	case last.State == sandbox.StateTerminating:
		return e.out(sandbox.OutcomeStuck, "still terminating after "+waited, e.fact("state", string(last.State)))
	case last.State.Ended():
		return e.out(sandbox.OutcomeAccepted, "it has ended, but what it leaves is still there after "+waited, e.fact("state", string(last.State)))
	}
	return e.out(sandbox.OutcomeAccepted, fmt.Sprintf("accepted but still %s after %s", last.State, waited), e.fact("state", string(last.State)))
}

// interrupted is the outcome of what was accepted when ctx ended.
func (e *end) interrupted(ctx context.Context) sandbox.Ending {
	out := e.out(sandbox.OutcomeAccepted, fmt.Sprintf("accepted, then not looked at any more: %v", context.Cause(ctx)))
	out.Err = e.line.m.fault(ctx, ctx.Err(), "terminate "+e.target.ID)
	return out
}
