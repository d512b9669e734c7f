package cli

import (
	"context"
	"errors"

	"sbx/internal/policy"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// breakerKind is under what the states of shared breakers are kept.
const breakerKind = "breaker"

// breaker is task.Breaker: which exits count against a place.
type breaker struct {
	shared *policy.Shared
	who    string
}

func newBreaker(docs store.DocStore, who string, notice func(string)) breaker {
	return breaker{policy.NewShared(breakers{docs}, policy.SharedOptions{Notice: notice}), who}
}

// Allow is task.Breaker's.
func (b breaker) Allow(ctx context.Context, place string) (task.Permit, error) {
	permit, err := b.shared.Allow(ctx, place, b.who)
	if err != nil {
		return task.Permit{}, err
	}
	done := func(ctx context.Context, result policy.Result) { _ = permit.Done(ctx, result) } // the notice has reported a failing store
	return task.Permit{
		Started: func(ctx context.Context) {
			if permit.Probe() { // it has policy.SharedProbe, a program hours
				done(ctx, policy.ResultGood)
			}
		},
		Done: func(ctx context.Context, class sandbox.Class) { done(ctx, resultOf(class)) },
	}, nil
}

// resultOf says whether an exit counts against its place: failures of infrastructure do, and
// kills without explanation. The program's own failures, stops, limits and memory do not.
func resultOf(class sandbox.Class) policy.Result {
	switch class {
	case sandbox.ClassOK, sandbox.ClassAgentError:
		return policy.ResultGood
	case sandbox.ClassInfra, sandbox.ClassTransport, sandbox.ClassGone, sandbox.ClassLauncher, sandbox.ClassKilledUnknown:
		return policy.ResultFault
	case sandbox.ClassUsage, sandbox.ClassAuth, sandbox.ClassEnvironment, sandbox.ClassOOM, sandbox.ClassKilledByUs, sandbox.ClassCrash,
		sandbox.ClassTimeout, sandbox.ClassStopped, sandbox.ClassUnknown:
	}
	return policy.ResultNeutral
}

// breakers is policy.BreakerStore over the store.
type breakers struct{ docs store.DocStore }

// LoadBreaker is policy.BreakerStore's.
func (b breakers) LoadBreaker(ctx context.Context, key string) (policy.BreakerState, error) {
	d, err := b.docs.Doc(ctx, breakerKind, key)
	return policy.BreakerState{Body: d.Body, Version: d.Version, Now: d.ReadAt}, err
}

// SwapBreaker is policy.BreakerStore's.
func (b breakers) SwapBreaker(ctx context.Context, key string, body []byte, version int64) (bool, error) {
	_, err := b.docs.SwapDoc(ctx, store.Doc{Kind: breakerKind, Key: key, Version: version, Body: body})
	if errors.Is(err, store.ErrSwapped) {
		return false, nil
	}
	return err == nil, err
}
