package fleet

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Get reads one sandbox: fault.KindNotFound, KindGone, or KindUsage for an
// unknown profile.
func (f *Fleet) Get(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	m, err := f.member(ref.Provider)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return m.get(ctx, ref.ID)
}

// Resolve reads the sandbox that a reference means in which somebody else chose the
// word: Get, which also takes a name where the provider's own read does. The id of
// what comes back is the provider's.
func (f *Fleet) Resolve(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	m, err := f.member(ref.Provider)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return m.resolve(ctx, ref.ID)
}

// Logs streams a sandbox's output. A silent provider ends it with an error
// after its timeout, except while following, where silence is normal.
func (f *Fleet) Logs(ctx context.Context, ref sandbox.Ref, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	m, reader, err := able[providers.LogReader](f, ref.Provider, "logs")
	if err != nil {
		return func(yield func(sandbox.LogLine, error) bool) { yield(sandbox.LogLine{}, err) }
	}
	op := "logs " + ref.ID
	read := func(ctx context.Context) iter.Seq2[sandbox.LogLine, error] { return reader.Logs(ctx, ref.ID, q) }
	if !q.Follow {
		return watched(ctx, m, op, read)
	}
	return func(yield func(sandbox.LogLine, error) bool) {
		for line, err := range read(ctx) {
			if err != nil {
				err = m.fault(ctx, err, op)
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

// KeepsLogs says that a profile may show the log of a sandbox that is gone.
func (f *Fleet) KeepsLogs(profile string) bool {
	m, err := f.member(profile)
	if err != nil {
		return false
	}
	k, ok := providers.As[providers.LogKeeper](m.Provider)
	return ok && k.KeepsLogs()
}

// Usage reads one sample of a sandbox's use of resources.
func (f *Fleet) Usage(ctx context.Context, ref sandbox.Ref) (sandbox.Usage, error) {
	m, reader, err := able[providers.UsageReader](f, ref.Provider, "usage")
	if err != nil {
		return sandbox.Usage{}, err
	}
	return call(ctx, m, "usage "+ref.ID, func(ctx context.Context) (sandbox.Usage, error) {
		return reader.Usage(ctx, ref.ID)
	})
}

// UsageHistory reads the samples that the provider keeps of a sandbox, oldest first.
func (f *Fleet) UsageHistory(ctx context.Context, ref sandbox.Ref, since time.Time) ([]sandbox.Usage, error) {
	m, reader, err := able[providers.UsageHistoryReader](f, ref.Provider, "history")
	if err != nil {
		return nil, err
	}
	return call(ctx, m, "usage "+ref.ID, func(ctx context.Context) ([]sandbox.Usage, error) {
		return reader.UsageHistory(ctx, ref.ID, since)
	})
}

// Processes lists the programs that the provider started in a sandbox.
func (f *Fleet) Processes(ctx context.Context, ref sandbox.Ref) ([]providers.Process, error) {
	m, lister, err := able[providers.ProcessLister](f, ref.Provider, "processes")
	if err != nil {
		return nil, err
	}
	return call(ctx, m, "processes "+ref.ID, func(ctx context.Context) ([]providers.Process, error) {
		return lister.Processes(ctx, ref.ID)
	})
}

// Probe asks whether a sandbox answers, without changing its life.
func (f *Fleet) Probe(ctx context.Context, ref sandbox.Ref) (providers.Health, error) {
	m, prober, err := able[providers.Prober](f, ref.Provider, "probe")
	if err != nil {
		return providers.Health{}, err
	}
	return call(ctx, m, "probe "+ref.ID, func(ctx context.Context) (providers.Health, error) {
		return prober.Probe(ctx, ref.ID)
	})
}

// Events reads the record of a sandbox's life, oldest first: the provider's own
// and that of the sources attached to it. What fails of several is an error
// beside the events of the others.
func (f *Fleet) Events(ctx context.Context, ref sandbox.Ref) ([]sandbox.Event, error) {
	m, err := f.member(ref.Provider)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(m.all(), func(v voice) bool { _, ok := providers.As[providers.EventReader](v.of); return ok }) {
		return nil, providers.Unsupported(m.Provider, "events", f.providers())
	}
	s := sandbox.Sandbox{Provider: ref.Provider, ID: ref.ID}
	if m.links() {
		if s, err = m.get(ctx, ref.ID); err != nil { // it may be gone: the provider's own events are left
			s = sandbox.Sandbox{Provider: ref.Provider, ID: ref.ID}
		}
	}
	return m.events(ctx, s)
}

// links says that a source beside the provider needs the sandbox's record to find
// its own id for it.
func (m *member) links() bool {
	return slices.ContainsFunc(m.beside, func(v voice) bool { _, ok := providers.As[providers.Linker](v.of); return ok })
}

// Skew is how far the clock of a profile was ahead of this machine's at its last
// answer; false where that is not known.
func (f *Fleet) Skew(profile string) (time.Duration, bool) {
	m, err := f.member(profile)
	if err != nil {
		return 0, false
	}
	clock, ok := providers.As[providers.Clock](m.Provider)
	if !ok {
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

// Checks asks every provider and source that can check itself, all at once; the
// findings come in the order of the fleet. One that cannot has none.
func (f *Fleet) Checks(ctx context.Context) []ProviderCheck {
	type asked struct {
		of    providers.Named
		found []providers.Check
	}
	var answers []*asked
	var wg sync.WaitGroup
	for _, m := range f.members {
		for _, v := range m.all() {
			if checker, ok := providers.As[providers.Checker](v.of); ok {
				a := &asked{of: v.of}
				answers = append(answers, a)
				wg.Go(func() { a.found = m.check(ctx, checker) })
			}
		}
	}
	wg.Wait()
	var all []ProviderCheck
	for _, a := range answers {
		for _, c := range a.found {
			all = append(all, ProviderCheck{a.of.Name(), a.of.Type(), c})
		}
	}
	return all
}

func (m *member) check(ctx context.Context, checker providers.Checker) []providers.Check {
	found, err := bounded(ctx, m, "doctor", func(ctx context.Context) ([]providers.Check, error) {
		return checker.Check(ctx), ctx.Err()
	})
	if err != nil {
		found = append(found, providers.Check{Check: "answers", Verdict: sandbox.Unknown, Message: err.Error(), Hint: fault.HintOf(err)})
	}
	return found
}
