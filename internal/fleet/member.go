package fleet

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/policy"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// member is a provider with its timeout, slots and caches.
type member struct {
	Member

	slots    chan struct{}
	waiting  chan struct{} // calls that have left their slot: one for each look under way
	breaker  *policy.Breaker
	attached []source // Sources

	capacity  *capacity
	listing   *lastListing
	second    *secondListing
	history   History
	quota     *quotaUsed
	answers   *answers
	now       func() time.Time
	names     NameCache // Options.Names
	asking    func(provider string) (answered func())
	keptUntil func(sandbox.Sandbox) time.Time // Options.KeptUntil
	shows     func(sandbox.Sandbox) bool      // Restrict; nil = all
}

// callInSlot sends one request about one sandbox: in a slot, unless the breaker is open, and
// up to the provider's timeout. Time spent waiting for the slot does not count.
func callInSlot[T any](ctx context.Context, m *member, op string, do func(context.Context) (T, error)) (T, error) {
	return callWithBreaker(ctx, m, m.breaker, op, do)
}

func callWithBreaker[T any](ctx context.Context, m *member, b *policy.Breaker, op string, do func(context.Context) (T, error)) (T, error) {
	return callWithoutBreaker(ctx, m, op, func(ctx context.Context) (T, error) {
		done, err := b.Allow()
		if err != nil {
			var none T
			return none, err
		}
		got, err := do(ctx)
		counted := err
		if ctx.Err() != nil && !fault.AboutOneSandbox(err) { // a time-out counts, the caller's own cancellation does not
			counted = m.asFault(ctx, ctx.Err(), op)
		}
		done(counted)
		if b == m.breaker { // an attached source tells nothing of the provider
			m.answers.noteCall(counted)
		}
		return got, err
	})
}

// callWithoutBreaker is callInSlot without the breaker, for reads that are paced already and
// must continue: those that verify an end.
func callWithoutBreaker[T any](ctx context.Context, m *member, op string, do func(context.Context) (T, error)) (T, error) {
	ctx, release, err := m.takeSlot(ctx, op)
	if err != nil {
		var none T
		return none, err
	}
	defer release()
	return callWithTimeout(ctx, m, op, do)
}

// callWithTimeout sends one request without a slot.
func callWithTimeout[T any](ctx context.Context, m *member, op string, do func(context.Context) (T, error)) (T, error) {
	inner, cancel := context.WithTimeoutCause(ctx, m.Timeout, m.timeoutCause())
	defer cancel()
	defer m.asking(m.Provider.Name())()
	got, err := do(inner)
	if err != nil {
		return got, m.asFault(inner, err, op)
	}
	return got, nil
}

func (m *member) getSandbox(ctx context.Context, id string) (sandbox.Sandbox, error) {
	return callInSlot(ctx, m, "get "+id, func(ctx context.Context) (sandbox.Sandbox, error) {
		return m.getByID(ctx, id)
	})
}

// getWithoutBreaker is getSandbox without the breaker.
func (m *member) getWithoutBreaker(ctx context.Context, id string) (sandbox.Sandbox, error) {
	return callWithoutBreaker(ctx, m, "get "+id, func(ctx context.Context) (sandbox.Sandbox, error) {
		return m.getByID(ctx, id)
	})
}

// noProgressError is the cause of a context that ended for lack of progress.
type noProgressError struct{ after time.Duration }

// Error says how long there was no answer.
func (e noProgressError) Error() string { return "no answer within " + e.after.String() }

func (m *member) timeoutCause() error { return noProgressError{m.Timeout} }

// asFault turns any error into one that names its provider. A time-out of the provider is
// unavailable, not the operator's timeout.
func (m *member) asFault(ctx context.Context, err error, op string) error {
	name := m.Provider.Name()
	kind := fault.KindOf(err)
	if kind == fault.KindCanceled || kind == fault.KindTimeout {
		if silent, ok := errors.AsType[noProgressError](context.Cause(ctx)); ok {
			return &fault.Error{
				Kind: fault.KindUnavailable, Provider: name, Op: op, Err: silent, OneSandbox: fault.AboutOneSandbox(err), Silent: true,
				Hint: "the others were still queried; `sbx doctor --provider " + name + "` shows more",
			}
		}
	}
	var f *fault.Error
	if errors.As(err, &f) && f.Provider != "" {
		return err
	}
	return &fault.Error{Kind: kind, Provider: name, Op: op, Hint: fault.HintOf(err), Err: err}
}

// AbilityRow is what one profile can do.
type AbilityRow struct {
	Provider     string
	ProviderType string
	Abilities    []AbilityCell // in the order of providers.Abilities
}

// AbilityCell is one ability of one profile.
type AbilityCell struct {
	Name   string
	Has    bool
	Reason string // why not; "" where it has it
}

// Abilities is the table behind `sbx providers`, sources included; it sends no request.
func (f *Fleet) Abilities() []AbilityRow {
	rows := make([]AbilityRow, 0, len(f.members))
	for _, m := range f.members {
		row := AbilityRow{Provider: m.Provider.Name(), ProviderType: m.Provider.Type()}
		for _, a := range providers.Abilities() {
			cell := AbilityCell{Name: a.Name, Has: slices.ContainsFunc(m.sources(), func(s source) bool { return a.Has(s.named) })}
			if !cell.Has {
				cell.Reason = providers.WhyNot(m.Provider, a.Name)
			}
			row.Abilities = append(row.Abilities, cell)
		}
		rows = append(rows, row)
	}
	return rows
}

// requireAbility returns an ability of a profile; a missing one is fault.KindUnsupported
// and names the profiles that have it.
func requireAbility[A any](f *Fleet, profile, ability string) (*member, A, error) {
	var none A
	m, err := f.findMember(profile)
	if err != nil {
		return nil, none, err
	}
	a, ok := providers.As[A](m.Provider)
	if !ok {
		return nil, none, providers.Unsupported(m.Provider, ability, f.allProviders())
	}
	return m, a, nil
}

// callAbility calls a method of an ability, about one sandbox, in a slot.
func callAbility[A, T any](ctx context.Context, f *Fleet, ref sandbox.Ref, ability string, do func(A, context.Context, string) (T, error)) (T, error) {
	m, a, err := requireAbility[A](f, ref.Provider, ability)
	if err != nil {
		var none T
		return none, err
	}
	return callInSlot(ctx, m, ability+" "+ref.ID, func(ctx context.Context) (T, error) { return do(a, ctx, ref.ID) })
}

func withAbility[A any](sources []source) iter.Seq2[source, A] {
	return func(yield func(source, A) bool) {
		for _, s := range sources {
			if a, ok := providers.As[A](s.named); ok && !yield(s, a) {
				return
			}
		}
	}
}

func anyHasAbility[A any](sources []source) bool {
	for range withAbility[A](sources) {
		return true
	}
	return false
}

func (f *Fleet) allProviders() []providers.Provider {
	all := make([]providers.Provider, 0, len(f.members))
	for _, m := range f.members {
		all = append(all, m.Provider)
	}
	return all
}

// streamWithTimeout reads a stream of a provider until the provider makes no progress for its timeout.
// The consumer's time does not count.
func streamWithTimeout[T any](ctx context.Context, m *member, op string, open func(context.Context) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		inner, cancel := context.WithCancelCause(ctx)
		defer cancel(context.Canceled)
		defer m.asking(m.Provider.Name())()
		timer := time.AfterFunc(m.Timeout, func() { cancel(m.timeoutCause()) })
		defer timer.Stop()
		failed := false
		for item, err := range open(inner) {
			timer.Stop()
			if err != nil {
				failed = true
				err = m.asFault(inner, err, op)
			}
			if !yield(item, err) {
				return
			}
			timer.Reset(m.Timeout)
		}
		// A stream that ends without an error while its context ends is incomplete.
		if inner.Err() != nil && !failed {
			var none T
			yield(none, m.asFault(inner, inner.Err(), op))
		}
	}
}
