package fleet

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// EndRequests stores, for all processes and hosts, the requests to end a sandbox whose end is not
// proved yet (see sandbox.EndRequest): any verb that does not find it later judges by them.
type EndRequests interface {
	// Unconfirmed returns all stored requests, those too that were acknowledged.
	Unconfirmed(ctx context.Context) (map[sandbox.Ref]sandbox.EndRequest, error)
	// Keep stores a request, replacing an earlier one of this sandbox.
	Keep(ctx context.Context, ref sandbox.Ref, r sandbox.EndRequest) error
	// Forget deletes the request of a sandbox.
	Forget(ctx context.Context, ref sandbox.Ref) error
}

// keepLimit is the time limit of the store after the outcome of an end is known.
const keepLimit = 5 * time.Second

// Unconfirmed returns the requests to end a sandbox while its end is not proved. After one that was refused or not
// answered a read that does not find the sandbox proves nothing.
func (f *Fleet) Unconfirmed(ctx context.Context) (map[sandbox.Ref]sandbox.EndRequest, error) {
	if f.o.EndRequests == nil {
		return nil, nil //nolint:nilnil // there is no store
	}
	return f.o.EndRequests.Unconfirmed(ctx)
}

func (f *Fleet) newRequestCache() *requestCache { return &requestCache{store: f.o.EndRequests} }

// requestCache reads EndRequests at most once, when first needed. It is safe for concurrent use.
type requestCache struct {
	store EndRequests

	mu   sync.Mutex
	read bool
	all  map[sandbox.Ref]sandbox.EndRequest
	err  error
}

func (k *requestCache) find(ctx context.Context, ref sandbox.Ref) (*sandbox.EndRequest, error) {
	all, err := k.readAll(ctx)
	if r, ok := all[ref]; ok && err == nil {
		return &r, nil
	}
	return nil, err
}

// readAll gives all stored requests; nobody may change them.
func (k *requestCache) readAll(ctx context.Context) (map[sandbox.Ref]sandbox.EndRequest, error) {
	if k.store == nil {
		return nil, nil //nolint:nilnil // there is no store
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.read {
		all, err := k.store.Unconfirmed(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err() // another caller may have more time
		}
		k.read, k.all, k.err = true, maps.Clone(all), err
	}
	return k.all, k.err
}

// unlistedEnds are the sandboxes of a profile that a complete listing does not contain and whose requested end was not
// acknowledged and is not proved: each may still run.
func (k *requestCache) unlistedEnds(ctx context.Context, m *member, listed iter.Seq[*sandbox.Sandbox]) []sandbox.Ref {
	all, err := k.readAll(ctx)
	if err != nil {
		return nil // `ls --all` and doctor say that they cannot be read
	}
	var refs []sandbox.Ref
	for ref, r := range all {
		if ref.Provider == m.Provider.Name() && r.Unconfirmed() {
			refs = append(refs, ref)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	for s := range listed {
		refs = slices.DeleteFunc(refs, func(ref sandbox.Ref) bool { return m.sameID(ref.ID, s.ID) })
	}
	slices.SortFunc(refs, func(a, b sandbox.Ref) int { return strings.Compare(a.ID, b.ID) })
	return refs
}

// update stores or deletes the request of one sandbox after its outcome. It also does so
// when ctx has ended: a request without an answer has to be stored.
func (k *requestCache) update(ctx context.Context, e sandbox.Ending) error {
	if k.store == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), keepLimit)
	defer stop()
	if over := e.Outcome == sandbox.OutcomeVerified || e.Outcome == sandbox.OutcomeAlreadyGone; e.Request.Sent() && !over {
		return k.store.Keep(ctx, e.Ref, *e.Request)
	}
	if before, err := k.find(ctx, e.Ref); before == nil {
		return err
	}
	return k.store.Forget(ctx, e.Ref)
}

// nothingSent reports whether a failed end has sent nothing. That it found no sandbox is an answer.
func nothingSent(err error) bool {
	return errors.Is(err, providers.ErrNothingSent) && !showsAbsence(err)
}

// effectUnknown reports whether a failed request may have had an effect.
func effectUnknown(err error) bool {
	kind := fault.KindOf(err)
	return fault.Retryable(err) || kind == fault.KindUnknown
}

// noteSending records the request that is about to be sent; it is unconfirmed until it is
// answered.
func (e *termination) noteSending() {
	e.request = &sandbox.EndRequest{
		At: e.f.o.Now().UTC(), Detail: "no answer", Delete: e.o.Delete, CreatedAt: e.target.CreatedAt, StartedAt: e.target.StartedAt,
		State: e.target.State, Again: e.request.Unconfirmed(), Node: e.target.Node, ExpiresAt: expiry(e.target),
	}
}

// noteAnswer records the answer to the request. A request without effect restores before,
// the last request known from earlier.
func (e *termination) noteAnswer(before *sandbox.EndRequest, err error) {
	switch {
	case e.request == before: // no call was made
		e.withdraw(before, err)
	case err == nil:
		e.sent, e.request.Acknowledged, e.request.Detail = true, true, ""
	case nothingSent(err):
		e.withdraw(before, err)
	case effectUnknown(err):
		e.sent, e.request.Answered, e.request.Detail = true, providers.Answered(err), err.Error()
	case showsAbsence(err) && before == nil:
		e.sent, e.request.NotFound, e.request.Detail = true, true, err.Error()
	default:
		e.request = before
	}
}

// withdraw takes back what is on record of a request that was not sent.
func (e *termination) withdraw(before *sandbox.EndRequest, err error) {
	recorded := sandbox.EndRequest{At: e.f.o.Now().UTC(), Detail: err.Error(), NotSent: true}
	if before != nil {
		recorded = *before
	}
	e.tellAnswer(recorded)
	e.request = before
}

// noteEndShown marks the request as acknowledged when a record shows the requested end, in
// progress or complete, whatever its answer was.
func (e *termination) noteEndShown(now sandbox.Sandbox) {
	ending := now.State == sandbox.StateTerminating || e.endShown(now, nil)
	if e.request.Unconfirmed() && ending && now.State != e.target.State {
		e.request.Acknowledged = true
	}
}

// lastRequest is the last known request to end the sandbox: of this run, else of the caller
// or the store.
func (e *termination) lastRequest(ctx context.Context) (*sandbox.EndRequest, error) {
	if e.request != nil {
		return e.request, nil
	}
	r, err := e.earlier.find(ctx, e.target.Ref())
	if r != nil && r.Acknowledged && replaced(sandbox.Sandbox{CreatedAt: r.CreatedAt}, e.target) { // it was another one's
		return nil, err
	}
	if r != nil {
		e.request = r
	}
	return r, err
}

// absenceUnproved is why the absence of a record does not prove an end; "" = it may. final: a later look
// has the same result. Without providers.Verifier a provider's Get shows the state of the machine itself.
func (e *termination) absenceUnproved(ctx context.Context, proof providers.Proof) (why string, final bool) {
	r, err := e.lastRequest(ctx)
	switch {
	case proof.Independent:
		return "", true
	case err != nil:
		return "the record of an earlier request to end it cannot be read: " + err.Error(), true
	case r.Unconfirmed() && !r.NotFound:
		return "the request to end it was not acknowledged (" + r.Detail + "), so that a missing record proves nothing" + provedFrom(proof), true
	case r != nil && !r.NotFound:
		return "", true
	case proof.SameStore && e.f.o.Acknowledged != nil && e.f.o.Acknowledged(ctx, e.target.Ref()): // by another run
		return "", true
	case proof.SameStore:
		return "no request to end it was acknowledged, and the API drops a sandbox from all its answers at once, also one that runs on" + provedFrom(proof), true
	}
	return e.endRun.m.absenceDoubted(ctx, e.target.ID), false
}

// provedFrom says from when on an absence proves the end; "" = it is not known.
func provedFrom(proof providers.Proof) string {
	if proof.IndependentFrom.IsZero() {
		return ""
	}
	return "; from " + proof.IndependentFrom.UTC().Format(time.RFC3339) + " on it does: it cannot run longer"
}

// expiry is when the limit of a sandbox ends it, by this machine's clock: by the one of two clocks that is behind.
func expiry(s sandbox.Sandbox) time.Time {
	if s.ExpiresAt.IsZero() {
		return time.Time{}
	}
	return s.ExpiresAt.Add(max(0, -s.ClockSkew))
}

// showsAbsence reports whether a read found no sandbox: fault.KindNotFound or KindGone.
func showsAbsence(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.KindGone || kind == fault.KindNotFound
}

// absenceDoubted is why a 404 about a sandbox that nobody has asked to end is not believed; "" = it is.
// A listing that began after it must not show the sandbox.
func (m *member) absenceDoubted(ctx context.Context, id string) string {
	switch row, listed, err := m.listedRow(ctx, id); {
	case err != nil:
		return "it is unknown whether it is listed: " + err.Error()
	case listed && !row.State.Ended():
		return "the list shows it as " + string(row.State)
	}
	return ""
}
