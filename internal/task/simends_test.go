package task_test

import (
	"context"
	"iter"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/policy"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/schedule"
)

// A short model of how the fleet ends a sandbox. Where nothing lies, the provider is one without providers.Verifier,
// whose reads show the machine itself; else its list is a second source, and its limit ends each sandbox.

func isAbsent(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.KindGone || kind == fault.KindNotFound
}

// row is the list's word of one sandbox, as fleet's listedRow; its state is "" where it is not listed.
func (c cloud) row(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	found, err := ask(ctx, c.p, "cloud", "list", func() ([]sandbox.Sandbox, error) {
		return c.p.s.rows(ref.Provider, func(b *box) bool { return b.id == ref.ID })
	})
	if err != nil || len(found) == 0 {
		return sandbox.Sandbox{}, err
	}
	return found[0], nil
}

// Vanished is fleet.Fleet.Vanished: a read by id shows the end, and the list agrees.
func (c cloud) Vanished(ctx context.Context, ref sandbox.Ref) (bool, error) {
	switch now, err := c.Get(ctx, ref); {
	case err != nil && !isAbsent(err):
		return false, err
	case err == nil && now.State == sandbox.StateRunning:
		return false, nil
	}
	return c.agrees(ctx, ref)
}

// agrees is fleet's listConfirms.
func (c cloud) agrees(ctx context.Context, ref sandbox.Ref) (bool, error) {
	if c.p.s.truthful() {
		return true, nil
	}
	row, err := c.row(ctx, ref)
	return err == nil && row.State != sandbox.StateRunning, err
}

// Terminate requests the end once, and polls until it is seen.
func (c cloud) Terminate(ctx context.Context, targets []sandbox.Sandbox, o fleet.EndOptions) iter.Seq[sandbox.Ending] {
	return func(yield func(sandbox.Ending) bool) {
		for _, t := range targets {
			if c.p.s.pauses != nil && c.p.s.pauses() {
				yield(sandbox.Ending{Ref: t.Ref(), Outcome: sandbox.OutcomeNotAttempted, Err: fault.New(fault.KindUnavailable, "%w", policy.ErrOpen)})
				return
			}
			e := c.end(ctx, t, o)
			e.Ref = t.Ref()
			if !yield(e) {
				return
			}
		}
	}
}

// recheck is the read just before the request; true = it decides the outcome. An end that it shows has to be
// confirmed (fleet's corroborate).
func (c cloud) recheck(ctx context.Context, t sandbox.Sandbox, o fleet.EndOptions) (sandbox.Ending, bool) {
	now, err := c.Get(ctx, t.Ref())
	if isAbsent(err) || err == nil && now.State != sandbox.StateRunning && !o.Delete {
		var gone bool
		if gone, err = c.agrees(ctx, t.Ref()); gone {
			return sandbox.Ending{Outcome: sandbox.OutcomeAlreadyGone}, true
		}
	}
	if err != nil {
		return failed(err), true
	}
	if o.VerifyOnly {
		return sandbox.Ending{Outcome: sandbox.OutcomeAccepted, Reason: "it runs"}, true
	}
	outcome, why := o.Recheck.Judge(now)
	return sandbox.Ending{Outcome: outcome, Reason: why}, outcome != ""
}

func failed(err error) sandbox.Ending {
	return sandbox.Ending{Outcome: sandbox.OutcomeFailed, Reason: err.Error(), Err: err}
}

// ask sends the request, a second time where the list has what the provider did not find (fleet's callTerminate and
// listContradicts).
func (c cloud) ask(ctx context.Context, t sandbox.Sandbox, deletes bool) error {
	send := func() error {
		_, err := ask(ctx, c.p, "cloud", "terminate", func() (any, error) { return nil, c.p.s.terminate(c.p, t.ID, deletes) })
		return err
	}
	err := send()
	if isAbsent(err) && !c.p.s.truthful() {
		if row, unknown := c.row(ctx, t.Ref()); unknown == nil && (row.State == sandbox.StateRunning || row.State != "" && deletes) {
			return send()
		}
	}
	return err
}

// terminate is what the request does, and its answer. The lock is held.
func (s *sim) terminate(p *proc, id string, deletes bool) error {
	b, now := s.find(id), time.Now()
	state := s.state(b)
	if state == "" {
		return absent(id)
	}
	says := s.tells("answer", b, "404", "410", "ignored", "done, 503", "done, 403", "done, 404")
	switch {
	case says == "404", says == "410":
		return lied(says, id)
	case b.asked && (b.deleted || !deletes):
		return nil
	case state == sandbox.StateRunning:
		s.onAsked(p, b)
	}
	if b.liar > 0 || says == "ignored" {
		b.liar = max(0, b.liar-1)
		s.Logf("%s is said to end, and does not", b)
		return nil
	}
	b.asked, b.deleted = true, b.deleted || deletes
	if at := now.Add(b.ends); state == sandbox.StateRunning && (b.ended.IsZero() || at.Before(b.ended)) {
		b.ended, b.how = at, "terminated for "+p.String()
	}
	if says != "" {
		return lied(says, id)
	}
	return nil
}

// end is the life of fleet's termination: sendRequest, settleRequest, awaitEnd.
func (c cloud) end(ctx context.Context, t sandbox.Sandbox, o fleet.EndOptions) sandbox.Ending {
	s := c.p.s
	var request *sandbox.EndRequest
	if o.Earlier != nil {
		request = o.Earlier[t.Ref()]
		s.mu.Lock()
		s.requested = append(s.requested, request)
		s.mu.Unlock()
	}
	if o.Recheck.Skip == "" {
		if e, over := c.recheck(ctx, t, o); over {
			return e
		}
	}
	if o.Before != nil {
		_ = o.Before(ctx, t, o.Delete)
	}
	err := c.ask(ctx, t, o.Delete)
	answer := &sandbox.EndRequest{At: time.Now(), Acknowledged: err == nil, NotFound: isAbsent(err)}
	if err != nil {
		answer.Detail = err.Error()
	}
	if o.After != nil && (request == nil || !answer.NotFound) {
		o.After(t.Ref(), *answer)
	}
	switch {
	case isAbsent(err) && s.truthful():
		return sandbox.Ending{Outcome: sandbox.OutcomeAlreadyGone}
	case isAbsent(err) && request != nil: // what is known of it is not less than before
	case err == nil, isAbsent(err):
		request = answer
	case s.truthful(), !fault.Retryable(err) && fault.KindOf(err) != fault.KindUnknown:
		return failed(err)
	default:
		request = answer
		now, unread := c.Get(ctx, t.Ref())
		request.Acknowledged = unread == nil && now.State == sandbox.StateStopped && !o.Delete
		if !isAbsent(unread) && !request.Acknowledged {
			return failed(err)
		}
	}
	return c.awaitEnd(ctx, t, o, request)
}

func (c cloud) awaitEnd(ctx context.Context, t sandbox.Sandbox, o fleet.EndOptions, request *sandbox.EndRequest) sandbox.Ending {
	why, deadline := "still running", time.Now().Add(o.Wait)
	for pace := 100 * time.Millisecond; time.Now().Before(deadline); pace = min(2*pace, 2*time.Second) {
		now, err := c.Get(ctx, t.Ref())
		if isAbsent(err) || err == nil && now.State == sandbox.StateStopped && !o.Delete {
			if why = c.unproved(ctx, t, isAbsent(err), o.Delete, request); why == "" {
				return sandbox.Ending{Outcome: sandbox.OutcomeVerified}
			}
		}
		if !schedule.Sleep(ctx, pace) {
			break
		}
	}
	return sandbox.Ending{Outcome: sandbox.OutcomeAccepted, Reason: why}
}

// unproved is why an end that a read has shown is not proved, by fleet's proveEnd and absenceUnproved; "" = it is.
// missing: there is no record, as opposed to one that says that it has stopped.
func (c cloud) unproved(ctx context.Context, t sandbox.Sandbox, missing, deletes bool, request *sandbox.EndRequest) string {
	if c.p.s.truthful() {
		return ""
	}
	switch row, err := c.row(ctx, t.Ref()); {
	case err != nil:
		return err.Error()
	case row.State == sandbox.StateRunning, missing && deletes && row.State != "":
		return "it is listed"
	case !missing, request.Acknowledged:
		return ""
	case !request.NotFound && time.Now().Before(c.p.s.limitOf(t.ID)):
		return "its request was not acknowledged"
	case request.NotFound && row.State != "":
		return "nobody has asked for its end, and it is listed"
	}
	return ""
}

// limitOf is when a box ends at the latest.
func (s *sim) limitOf(id string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(id).ttl
}
