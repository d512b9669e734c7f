package fleet

import (
	"context"
	"iter"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Get reads one sandbox: fault.KindNotFound, KindGone, or KindUsage for an unknown profile.
func (f *Fleet) Get(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	m, err := f.findMember(ref.Provider)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return m.getSandbox(ctx, ref.ID)
}

// Resolve is Get for a word from outside, which may also be a name where the provider's own
// read accepts names. The returned id is the provider's.
func (f *Fleet) Resolve(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	m, err := f.findMember(ref.Provider)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return m.resolveInSlot(ctx, ref.ID)
}

// Logs streams a sandbox's output. A silent provider ends it with an error after its
// timeout, except while following, where silence is normal.
func (f *Fleet) Logs(ctx context.Context, ref sandbox.Ref, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	m, reader, err := requireAbility[providers.LogReader](f, ref.Provider, "logs")
	if err != nil {
		return func(yield func(sandbox.LogLine, error) bool) { yield(sandbox.LogLine{}, err) }
	}
	op := "logs " + ref.ID
	read := func(ctx context.Context) iter.Seq2[sandbox.LogLine, error] { return reader.Logs(ctx, ref.ID, q) }
	if !q.Follow {
		return streamWithTimeout(ctx, m, op, read)
	}
	return func(yield func(sandbox.LogLine, error) bool) {
		for line, err := range read(ctx) {
			if err != nil {
				err = m.asFault(ctx, err, op)
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

// KeepsLogs reports whether a profile may have the log of a sandbox that no longer exists.
func (f *Fleet) KeepsLogs(profile string) bool {
	_, k, err := requireAbility[providers.LogKeeper](f, profile, "logs")
	return err == nil && k.KeepsLogs()
}

// Usage reads one sample of a sandbox's usage.
func (f *Fleet) Usage(ctx context.Context, ref sandbox.Ref) (sandbox.Usage, error) {
	return callAbility(ctx, f, ref, "usage", providers.UsageReader.Usage)
}

// UsageHistory reads the samples that the provider stores of a sandbox, oldest first.
func (f *Fleet) UsageHistory(ctx context.Context, ref sandbox.Ref, since time.Time) ([]sandbox.Usage, error) {
	m, reader, err := requireAbility[providers.UsageHistoryReader](f, ref.Provider, "history")
	if err != nil {
		return nil, err
	}
	return callInSlot(ctx, m, "usage "+ref.ID, func(ctx context.Context) ([]sandbox.Usage, error) {
		return reader.UsageHistory(ctx, ref.ID, since)
	})
}

// Processes lists the processes that the provider started in a sandbox.
func (f *Fleet) Processes(ctx context.Context, ref sandbox.Ref) ([]providers.Process, error) {
	return callAbility(ctx, f, ref, "processes", providers.ProcessLister.Processes)
}

// Probe asks whether a sandbox answers, without changing its life.
func (f *Fleet) Probe(ctx context.Context, ref sandbox.Ref) (providers.Health, error) {
	return callAbility(ctx, f, ref, "probe", providers.Prober.Probe)
}

// Events reads the event log of a sandbox, oldest first, from the provider and the sources
// attached to it. A failure of one of them is an error beside the events of the others.
func (f *Fleet) Events(ctx context.Context, ref sandbox.Ref) ([]sandbox.Event, error) {
	m, err := f.findMember(ref.Provider)
	if err != nil {
		return nil, err
	}
	if !anyHasAbility[providers.EventReader](m.sources()) {
		return nil, providers.Unsupported(m.Provider, "events", f.allProviders())
	}
	s := sandbox.Sandbox{Provider: ref.Provider, ID: ref.ID}
	if anyHasAbility[providers.Linker](m.attached) { // a source needs the record to find its own id of the sandbox
		if s, err = m.getSandbox(ctx, ref.ID); err != nil { // it may be gone: the provider's own events are left
			s = sandbox.Sandbox{Provider: ref.Provider, ID: ref.ID}
		}
	}
	return m.mergeEvents(ctx, s)
}

// Skew is how far the clock of a profile was ahead of this machine's at its last answer;
// false where that is not known.
func (f *Fleet) Skew(profile string) (time.Duration, bool) {
	_, clock, err := requireAbility[providers.Clock](f, profile, "clock")
	if err != nil {
		return 0, false
	}
	return clock.Skew()
}

// ProviderCheck is one finding of doctor about a profile.
type ProviderCheck struct {
	Provider     string
	ProviderType string
	providers.Check
}

// Checks runs the self-checks of every provider and source at once; the findings are in the
// order of the fleet.
func (f *Fleet) Checks(ctx context.Context) []ProviderCheck {
	type checker struct {
		m  *member
		of providers.Named
		providers.Checker
	}
	var checkers []checker
	for _, m := range f.members {
		for v, c := range withAbility[providers.Checker](m.sources()) {
			checkers = append(checkers, checker{m, v.named, c})
		}
	}
	return slices.Concat(inParallel(checkers, func(c checker) (all []ProviderCheck) {
		for _, found := range c.m.runCheck(ctx, c.Checker) {
			all = append(all, ProviderCheck{c.of.Name(), c.of.Type(), found})
		}
		return all
	})...)
}

func (m *member) runCheck(ctx context.Context, checker providers.Checker) []providers.Check {
	found, err := callWithTimeout(ctx, m, "doctor", func(ctx context.Context) ([]providers.Check, error) {
		return checker.Check(ctx), ctx.Err()
	})
	if err != nil {
		found = append(found, providers.Check{Check: "answers", Verdict: sandbox.Unknown, Message: err.Error(), Hint: fault.HintOf(err)})
	}
	return found
}
