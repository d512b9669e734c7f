package fleet

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Goal is what a wait is for.
type Goal string

// The goals of `sbx wait --for`.
const (
	GoalEnded   Goal = "ended"
	GoalRunning Goal = "running"
)

// Goals lists every goal.
func Goals() []Goal { return []Goal{GoalEnded, GoalRunning} }

// Wait looks at a sandbox, at the pace of Options.Poll, until it is what the
// goal says, and returns it. One that vanishes has ended: its last description
// comes back as terminated, with raw state "gone".
//
// What ended before it ran is fault.KindUnverified; what never was is
// KindNotFound. Failed looks are repeated until the provider has given no
// answer for its timeout.
func (f *Fleet) Wait(ctx context.Context, ref sandbox.Ref, goal Goal) (sandbox.Sandbox, error) {
	m, err := f.member(ref.Provider)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	last := sandbox.Sandbox{Provider: ref.Provider, ProviderType: m.Provider.Type(), ID: ref.ID}
	heard := time.Now()
	for pace := f.pace(); ; {
		got, err := m.again(ctx, ref.ID)
		switch kind := fault.KindOf(err); {
		case err == nil:
			last, heard = got, time.Now()
		case kind == fault.KindGone, kind == fault.KindNotFound && last.State != "":
			if err := f.endConfirmed(ctx, m, ref); err != nil {
				return last, err
			}
			last.State, last.RawState = sandbox.StateTerminated, "gone"
		case ctx.Err() != nil, !fault.Retryable(err), time.Since(heard) >= m.Timeout:
			return last, err
		}
		if done, err := reached(last, goal); done || err != nil {
			return last, err
		}
		if !wait(ctx, pace.next()) {
			return last, m.fault(ctx, ctx.Err(), "wait "+ref.ID+" (it is "+string(last.State)+")")
		}
	}
}

// endConfirmed refuses the absence of a record as an end where the last request to end
// the sandbox was not acknowledged.
func (f *Fleet) endConfirmed(ctx context.Context, m *member, ref sandbox.Ref) error {
	if _, ok := providers.As[providers.Verifier](m.Provider); !ok {
		return nil
	}
	r, err := f.requests().of(ctx, ref)
	switch {
	case err != nil:
		return fault.New(fault.KindUnverified, "it is not there any more, and whether a request to end it was refused cannot be read: %w", err).At(ref.Provider, "wait "+ref.ID)
	case r.Unconfirmed():
		return fault.New(fault.KindUnverified, "it is not there any more, and the request to end it was not acknowledged (%s)", r.Detail).At(ref.Provider, "wait "+ref.ID).
			WithHint("`sbx terminate %s` looks for a proof of its end", ref)
	}
	return nil
}

func reached(s sandbox.Sandbox, goal Goal) (bool, error) {
	switch {
	case goal == GoalEnded:
		return s.State.Ended(), nil
	case s.State == sandbox.StateRunning:
		return true, nil
	case s.State.Ended():
		return false, fault.New(fault.KindUnverified, "it is %s and will not run", s.State).At(s.Provider, "wait "+s.ID).
			WithHint("`sbx inspect %s` says how it ended", s.Ref())
	}
	return false, nil
}

// pace is how long to wait before each next look.
type pace struct{ now, max time.Duration }

func (f *Fleet) pace() *pace { return &pace{f.o.Poll.Min, f.o.Poll.Max} }

func (p *pace) next() time.Duration {
	d := p.now
	p.now = min(2*d, p.max)
	return d
}
