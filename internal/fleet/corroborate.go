package fleet

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// One read that shows an end which no request of this run explains may be wrong: a proxy, a stale cache, a
// false 404 or 410. Here the list is asked as a second source. Where the two disagree, the sandbox counts as
// running. A provider without providers.Verifier needs none: its reads show the machine itself.

// corroborate compares the read before the request with the list, where it shows an end that nobody is known
// to have asked for. Where the list has the sandbox, its row replaces the read, and the request is sent
// whatever the provider's record says (e.insist).
func (e *termination) corroborate(ctx context.Context, now sandbox.Sandbox, err error) (sandbox.Sandbox, error) {
	m := e.endRun.m
	stated := err == nil && !e.o.Delete && showsEnd(now)
	if !stated && !showsAbsence(err) || !m.needsProof() {
		return now, err
	}
	row, listed, failed := m.listedRow(ctx, e.target.ID)
	switch {
	case ctx.Err() != nil:
		return now, err
	case failed != nil:
		e.insist = stated // nothing confirms what the record says: the request costs an ended sandbox nothing
	case listed && stated && !showsEnd(row), listed && !stated && !row.State.Ended():
		e.insist = !showsEnd(row)
		return row, nil
	}
	return now, err
}

// listContradicts reports whether the list shows as running what the provider did not find, or found ended,
// when the request was to be sent.
func (e *termination) listContradicts(ctx context.Context) bool {
	if !e.endRun.m.needsProof() {
		return false
	}
	row, listed, err := e.endRun.m.listedRow(ctx, e.target.ID)
	return err == nil && listed && !row.State.Ended() && (e.o.Delete || row.State != sandbox.StateStopped)
}

// showsEnd reports whether a record says that the sandbox does not run any more.
func showsEnd(s sandbox.Sandbox) bool { return s.State.Ended() || s.State == sandbox.StateStopped }

// needsProof reports whether a read by id alone proves no end here.
func (m *member) needsProof() bool {
	_, ok := providers.As[providers.Verifier](m.Provider)
	return ok
}

// Vanished reports whether a sandbox does not run any more: a read by id shows its end or does not find it,
// and the list agrees. That is enough to stop waiting for it, and no proof that its machine has ended. An
// error: one of the two could not be read.
func (f *Fleet) Vanished(ctx context.Context, ref sandbox.Ref) (bool, error) {
	m, err := f.findMember(ref.Provider)
	if err != nil {
		return false, err
	}
	switch now, err := m.getWithoutBreaker(ctx, ref.ID); {
	case err != nil && !showsAbsence(err):
		return false, err
	case err == nil && !showsEnd(now):
		return false, nil
	}
	return m.listConfirms(ctx, ref.ID)
}

// listConfirms reports whether the list agrees with an end that a read by id has shown, where that needs a second
// source. An error: the list could not be read.
func (m *member) listConfirms(ctx context.Context, id string) (bool, error) {
	if !m.needsProof() {
		return true, nil
	}
	row, listed, err := m.listedRow(ctx, id)
	return err == nil && (!listed || showsEnd(row)), err
}

// EndUnproved is fault.KindUnverified where the record of a sandbox is missing and that does not
// prove its end; nil = nothing is in doubt.
func (f *Fleet) EndUnproved(ctx context.Context, ref sandbox.Ref) error {
	m, err := f.findMember(ref.Provider)
	if err != nil {
		return err
	}
	return f.proveAbsence(ctx, m, sandbox.Sandbox{Provider: ref.Provider, ID: ref.ID}, "wait")
}

// absencePatience is how long the proof of an absence may take: some providers need two reads, apart.
const absencePatience = 10 * time.Second

// proveAbsence is nil where the missing record of a sandbox, last read as last, proves its end by the same rules
// as after a request; else fault.KindUnverified with the reason. Nothing is sent.
func (f *Fleet) proveAbsence(ctx context.Context, m *member, last sandbox.Sandbox, op string) error {
	if !m.needsProof() {
		return nil
	}
	e := &termination{f: f, endRun: newEndRun(m, func(error) {}, 1, 0), target: last, earlier: f.newRequestCache()}
	for began, pauses := time.Now(), f.readPauses(); ; {
		p := e.proveEnd(ctx, true)
		switch {
		case p.ended:
			return nil
		case ctx.Err() != nil:
			return m.asFault(ctx, ctx.Err(), op+" "+last.ID)
		case p.final || time.Since(began) >= absencePatience:
			return fault.New(fault.KindUnverified, "its provider does not find it, which proves no end: %s", e.unprovedReason).At(last.Provider, op+" "+last.ID).
				WithHint("`sbx terminate %s` tries to verify its end", last.Ref())
		}
		_ = poll.Sleep(ctx, pauses.Next()) // the loop looks at ctx
	}
}
