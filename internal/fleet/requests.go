package fleet

import (
	"context"
	"maps"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// EndRequests keeps, where every process and host sees them, the requests to end a
// sandbox that were refused or not answered (see sandbox.EndRequest).
type EndRequests interface {
	// Unconfirmed gives all that are kept.
	Unconfirmed(ctx context.Context) (map[sandbox.Ref]sandbox.EndRequest, error)
	// Keep adds one, or replaces what was kept of this sandbox.
	Keep(ctx context.Context, ref sandbox.Ref, r sandbox.EndRequest) error
	// Forget drops what was kept of a sandbox.
	Forget(ctx context.Context, ref sandbox.Ref) error
}

// keepLimit bounds what a store may cost after the outcome of an end is known.
const keepLimit = 5 * time.Second

// Unconfirmed gives the requests to end a sandbox that were refused or not answered,
// where nothing has proved the end since. Until then a read that does not find one of
// these sandboxes says nothing.
func (f *Fleet) Unconfirmed(ctx context.Context) (map[sandbox.Ref]sandbox.EndRequest, error) {
	if f.o.EndRequests == nil {
		return nil, nil //nolint:nilnil // nothing is kept anywhere
	}
	return f.o.EndRequests.Unconfirmed(ctx)
}

// requests is what is kept, read when it is needed first.
func (f *Fleet) requests() *kept { return &kept{store: f.o.EndRequests} }

// kept reads EndRequests at most once. It is safe for concurrent use.
type kept struct {
	store EndRequests

	mu   sync.Mutex
	read bool
	all  map[sandbox.Ref]sandbox.EndRequest
	err  error
}

func (k *kept) of(ctx context.Context, ref sandbox.Ref) (*sandbox.EndRequest, error) {
	if k.store == nil {
		return nil, nil //nolint:nilnil // nothing is kept anywhere
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
	if r, ok := k.all[ref]; ok && k.err == nil {
		return &r, nil
	}
	return nil, k.err
}

// note keeps or drops what the ending of one sandbox has left open. It also does so
// when ctx has ended: that an answer was not waited for is what has to be kept.
func (k *kept) note(ctx context.Context, e sandbox.Ending) error {
	if k.store == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), keepLimit)
	defer stop()
	over := e.Outcome == sandbox.OutcomeVerified || e.Outcome == sandbox.OutcomeAlreadyGone
	if e.Request.Unconfirmed() && !over {
		return k.store.Keep(ctx, e.Ref, *e.Request)
	}
	before, err := k.of(ctx, e.Ref)
	if before == nil || e.Request.Unconfirmed() && !over {
		return err
	}
	return k.store.Forget(ctx, e.Ref)
}

// openEnded says that a request may have had an effect although it failed.
func openEnded(err error) bool {
	kind := fault.KindOf(err)
	return fault.Retryable(err) || kind == fault.KindUnknown
}

// sending notes the request that is about to be sent; until it is answered it is
// unconfirmed.
func (e *end) sending() {
	e.request = &sandbox.EndRequest{
		At: e.f.o.Now().UTC(), Detail: "no answer", Delete: e.o.Delete, CreatedAt: e.target.CreatedAt, StartedAt: e.target.StartedAt,
	}
}

// answered notes what became of the request: before is the one that is known from
// earlier, which stays the last one where this one has changed nothing.
func (e *end) answered(before *sandbox.EndRequest, err error) {
	switch {
	case e.request == before: // nothing was sent
	case err == nil:
		e.sent, e.request.Acknowledged, e.request.Detail = true, true, ""
	case openEnded(err):
		e.sent, e.request.Detail = true, err.Error()
	default:
		e.request = before
	}
}

// underWay notes that a record shows the end that was asked for, coming or done: so
// the request was heard, whatever became of its answer.
func (e *end) underWay(now sandbox.Sandbox) {
	ending := now.State == sandbox.StateTerminating || e.over(now, nil)
	if e.request.Unconfirmed() && ending && now.State != e.target.State {
		e.request.Acknowledged = true
	}
}

// lastRequest is the last request to end the sandbox that anybody knows of: that of
// this run, else what the caller or the store has kept.
func (e *end) lastRequest(ctx context.Context) (*sandbox.EndRequest, error) {
	if e.request != nil {
		return e.request, nil
	}
	r, err := e.kept.of(ctx, e.target.Ref())
	if r != nil {
		e.request = r
	}
	return r, err
}

// forgetful says why the absence of a record is no proof of an end; "" = it may be.
// Without providers.Verifier a provider's Get speaks of the machine itself.
func (e *end) forgetful(ctx context.Context, proof providers.Proof) string {
	r, err := e.lastRequest(ctx)
	switch {
	case proof.Independent:
		return ""
	case err != nil:
		return "whether an earlier request to end it was refused cannot be read: " + err.Error()
	case r.Unconfirmed():
		return "the request to end it was not acknowledged (" + r.Detail + "), so that a missing record proves nothing"
	}
	return ""
}
