package fleet

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/policy"
	"sbx/internal/sandbox"
)

// member is a provider with its share of the fleet's patience and slots.
type member struct {
	Member

	slots   chan struct{}
	breaker *policy.Breaker
	beside  []voice // Sources

	capacity  *capacity
	listing   *lastListing
	quota     *quotaUsed
	now       func() time.Time
	keptUntil func(sandbox.Sandbox) time.Time // Options.KeptUntil
}

// call makes one request about one sandbox: in a slot, unless the breaker is
// open, and given up when the provider's time is over. Time spent waiting for
// the slot does not count.
func call[T any](ctx context.Context, m *member, op string, do func(context.Context) (T, error)) (T, error) {
	return callBy(ctx, m, m.breaker, op, do)
}

// callBy is call with the breaker of whoever is asked.
func callBy[T any](ctx context.Context, m *member, b *policy.Breaker, op string, do func(context.Context) (T, error)) (T, error) {
	return persist(ctx, m, op, func(ctx context.Context) (T, error) {
		done, err := b.Allow()
		if err != nil {
			var none T
			return none, err
		}
		got, err := do(ctx)
		if ctx.Err() != nil && !fault.AboutOneSandbox(err) { // silence counts, the caller's own end does not
			done(m.fault(ctx, ctx.Err(), op))
			return got, err
		}
		done(err)
		return got, err
	})
}

// persist is call without the breaker, for looks that are paced already and
// must go on: those for an end that was asked for.
func persist[T any](ctx context.Context, m *member, op string, do func(context.Context) (T, error)) (T, error) {
	leave, err := m.slot(ctx, op)
	if err != nil {
		var none T
		return none, err
	}
	defer leave()
	return bounded(ctx, m, op, do)
}

// slot waits for one, and gives what to call when it is not needed any more.
func (m *member) slot(ctx context.Context, op string) (leave func(), err error) {
	select {
	case m.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, m.fault(ctx, ctx.Err(), op)
	}
	leave = func() { <-m.slots }
	if err := ctx.Err(); err != nil { // both were ready
		leave()
		return nil, m.fault(ctx, err, op)
	}
	return leave, nil
}

// bounded makes one request without a slot.
func bounded[T any](ctx context.Context, m *member, op string, do func(context.Context) (T, error)) (T, error) {
	inner, cancel := context.WithTimeoutCause(ctx, m.Timeout, m.silent())
	defer cancel()
	got, err := do(inner)
	if err != nil {
		return got, m.fault(inner, err, op)
	}
	return got, nil
}

// get reads one sandbox in a slot.
func (m *member) get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	return call(ctx, m, "get "+id, func(ctx context.Context) (sandbox.Sandbox, error) {
		return m.getByID(ctx, id)
	})
}

// again is get without the breaker.
func (m *member) again(ctx context.Context, id string) (sandbox.Sandbox, error) {
	return persist(ctx, m, "get "+id, func(ctx context.Context) (sandbox.Sandbox, error) {
		return m.getByID(ctx, id)
	})
}

// silentError is the cause of a context that ended for lack of progress.
type silentError struct{ after time.Duration }

// Error says for how long nothing came.
func (e silentError) Error() string { return "no answer within " + e.after.String() }

func (m *member) silent() error { return silentError{m.Timeout} }

// fault makes any error one that names its provider. What ended because the
// provider's time was over is unavailable, not the operator's timeout.
func (m *member) fault(ctx context.Context, err error, op string) error {
	name := m.Provider.Name()
	kind := fault.KindOf(err)
	if kind == fault.KindCanceled || kind == fault.KindTimeout {
		if silent, ok := errors.AsType[silentError](context.Cause(ctx)); ok {
			return &fault.Error{
				Kind: fault.KindUnavailable, Provider: name, Op: op, Err: silent, OneSandbox: fault.AboutOneSandbox(err),
				Hint: "the others were asked all the same; `sbx doctor --provider " + name + "` says more",
			}
		}
	}
	var f *fault.Error
	if errors.As(err, &f) && f.Provider != "" {
		return err
	}
	return &fault.Error{Kind: kind, Provider: name, Op: op, Hint: fault.HintOf(err), Err: err}
}

func isSilent(err error) bool {
	_, silent := errors.AsType[silentError](err)
	return silent
}
