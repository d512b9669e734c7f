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
	if err := checkLogParts(m, q); err != nil {
		return func(yield func(sandbox.LogLine, error) bool) {
			yield(sandbox.LogLine{}, fault.Placed(err, ref.Provider, op))
		}
	}
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

// UsageHistory reads the samples that the provider stores of a sandbox, oldest first: those of the time asked for, and
// none unless the newest shows the present.
func (f *Fleet) UsageHistory(ctx context.Context, ref sandbox.Ref, since time.Time) ([]sandbox.Usage, error) {
	m, reader, err := requireAbility[providers.UsageHistoryReader](f, ref.Provider, "history")
	if err != nil {
		return nil, err
	}
	kept, err := callInSlot(ctx, m, "usage "+ref.ID, func(ctx context.Context) ([]sandbox.Usage, error) {
		return reader.UsageHistory(ctx, ref.ID, since)
	})
	if here := currentSamples(kept, since, f.o.Now()); here != nil {
		return here, err
	}
	ahead, _ := f.Skew(ref.Provider)
	return currentSamples(kept, since.Add(ahead), f.o.Now().Add(ahead)), err
}

// freshIntervals is how many sampling intervals old the newest sample may be that shows the present.
const freshIntervals = 3

// currentSamples are the samples from since to now, by one clock; none where the newest of them is older than
// freshIntervals of their own.
func currentSamples(kept []sandbox.Usage, since, now time.Time) []sandbox.Usage {
	kept = slices.DeleteFunc(slices.Clone(kept), func(u sandbox.Usage) bool {
		return u.At.Before(since.Add(-time.Second)) || u.At.After(now.Add(longestStep))
	})
	if len(kept) < 2 {
		return nil
	}
	gaps := make([]time.Duration, 0, len(kept))
	for i := range kept[1:] {
		gaps = append(gaps, kept[i+1].At.Sub(kept[i].At))
	}
	slices.Sort(gaps)
	interval := min(max(gaps[len(gaps)/2], time.Second), longestStep)
	if now.Sub(kept[len(kept)-1].At) > freshIntervals*interval+time.Second { // times are of whole seconds
		return nil
	}
	return kept
}

// checkFresh is the error of a sample that does not show the present, whatever its provider's interval is.
func (f *Fleet) checkFresh(ref sandbox.Ref, newest sandbox.Usage) error {
	ahead, _ := f.Skew(ref.Provider) // what is measured inside has this machine's time
	if age := f.o.Now().Add(min(ahead, 0)).Sub(newest.At); age > freshIntervals*longestStep {
		return fault.New(fault.KindUnavailable, "its newest figures are %s old", sandbox.FormatDuration(age)).At(ref.Provider, "usage "+ref.ID)
	}
	return nil
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
	m, s, err := f.findEvents(ctx, ref)
	if err != nil {
		return nil, err
	}
	return m.mergeEvents(ctx, s)
}

// AgentEvents gives what the agent in a sandbox reported, each event with its data, and the events of the
// sandbox's life to add; see providers.AgentEventReader. A failure of a source is an error beside the events
// of the others. Of reads that are repeated, refused leaves out for a while what refuses; nil = nothing.
func (f *Fleet) AgentEvents(ctx context.Context, ref sandbox.Ref, page int, refused *RefusedSources, add func(providers.AgentEvent) bool) error {
	m, s, err := f.findEvents(ctx, ref)
	if err != nil {
		return err
	}
	return m.eachAgentEvent(ctx, s, page, refused, add)
}

// WakeOnAgentEvents calls wake when the agent in a sandbox has reported something, until ctx ends or no source can say
// so; see providers.AgentEventWaker.
func (f *Fleet) WakeOnAgentEvents(ctx context.Context, ref sandbox.Ref, wake func()) {
	m, s, err := f.findEvents(ctx, ref)
	if err != nil {
		return
	}
	var running sync.WaitGroup
	for v, waker := range withAbility[providers.AgentEventWaker](m.sources()) {
		running.Go(func() {
			id, err := callSource(ctx, m, v, s, "events", func(_ context.Context, id string) (string, error) { return id, nil })
			if err == nil {
				waker.WakeOnEvents(ctx, id, wake)
			}
		})
	}
	running.Wait()
}

// findEvents finds who has events of a sandbox, with its record where a source needs one.
func (f *Fleet) findEvents(ctx context.Context, ref sandbox.Ref) (*member, sandbox.Sandbox, error) {
	s := sandbox.Sandbox{Provider: ref.Provider, ID: ref.ID}
	m, err := f.findMember(ref.Provider)
	if err != nil {
		return nil, s, err
	}
	if !anyHasAbility[providers.EventReader](m.sources()) {
		return nil, s, providers.Unsupported(m.Provider, "events", f.allProviders())
	}
	if anyHasAbility[providers.Linker](m.attached) { // a source needs the record to find its own id of the sandbox
		if found, err := m.getSandbox(ctx, ref.ID); err == nil { // it may be gone: the provider's own events are left
			s = found
		}
	}
	return m, s, nil
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

// inParallel calls do for every item at once and returns the results in the order of items.
func inParallel[T, R any](items []T, do func(T) R) []R {
	results := make([]R, len(items))
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() { results[i] = do(item) })
	}
	all.Wait()
	return results
}

// Tail reads the last n lines of a sandbox's output that are its work, and holds at most twice as many,
// whatever the provider returns. It takes a slot, since many may be read at once.
func (f *Fleet) Tail(ctx context.Context, ref sandbox.Ref, n int) Part[[]sandbox.LogLine] {
	return f.tail(ctx, ref, n, false)
}

func (f *Fleet) tail(ctx context.Context, ref sandbox.Ref, n int, noProgram bool) Part[[]sandbox.LogLine] {
	var p Part[[]sandbox.LogLine]
	m, _, err := requireAbility[providers.LogReader](f, ref.Provider, "logs")
	if err != nil {
		p.Err = err
		return p
	}
	ctx, release, err := m.takeSlot(ctx, "logs "+ref.ID)
	if err != nil {
		p.Err = err
		return p
	}
	defer release()
	for line, err := range f.Logs(ctx, ref, providers.LogQuery{Tail: n, Work: true, NoProgram: noProgram}) {
		if err != nil {
			p.Err = err
			break
		}
		if len(p.Got) == 2*n {
			p.Got = append(p.Got[:0], p.Got[n:]...)
		}
		p.Got = append(p.Got, line)
	}
	p.Got = p.Got[max(0, len(p.Got)-n):]
	return p
}
