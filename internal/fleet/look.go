package fleet

import (
	"context"
	"slices"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// looksPerSlot is how many sandboxes of one provider are looked at at once, for each slot: a look
// also waits between two samples, and then it holds no slot. Ten thousand goroutines that wait
// cost more than the looks themselves.
const looksPerSlot = 16

// ForEach calls do for every sandbox and returns when all calls have returned: the providers at
// once, since a silent one must not delay the others, and a bounded number of the sandboxes of
// each. do is called concurrently.
func (f *Fleet) ForEach(items []sandbox.Sandbox, do func(i int)) {
	f.forEachProvider(items, func(_ string, indexes []int) { inWorkers(f.o.Slots*looksPerSlot, indexes, do) })
}

// forEachUnread is ForEach after take was called with the newest usage of each sandbox, as far as
// its provider reads the usage of many in one request. do is called where take returned false,
// and where that usage is not known.
func (f *Fleet) forEachUnread(ctx context.Context, items []sandbox.Sandbox, take func(i int, u sandbox.Usage) bool, do func(i int)) {
	taken := make([]bool, len(items)) // each is written by one goroutine
	f.forEachProvider(items, func(profile string, indexes []int) {
		if m, reader, err := requireAbility[providers.UsageBatchReader](f, profile, "usage"); err == nil {
			f.readNewestUsage(ctx, m, reader, items, indexes, func(i int, u sandbox.Usage) { taken[i] = take(i, u) })
		}
		rest := slices.DeleteFunc(slices.Clone(indexes), func(i int) bool { return taken[i] })
		inWorkers(f.o.Slots*looksPerSlot, rest, do)
	})
}

// forEachProvider calls do for the sandboxes of each provider, all at once.
func (f *Fleet) forEachProvider(items []sandbox.Sandbox, do func(profile string, indexes []int)) {
	byProvider := map[string][]int{}
	for i, s := range items {
		byProvider[s.Provider] = append(byProvider[s.Provider], i)
	}
	var all sync.WaitGroup
	for profile, indexes := range byProvider {
		all.Go(func() { do(profile, indexes) })
	}
	all.Wait()
}

// inWorkers calls do for every item, at most n at once.
func inWorkers[T any](n int, items []T, do func(T)) {
	next := make(chan T)
	var workers sync.WaitGroup
	for range min(n, len(items)) {
		workers.Go(func() {
			for item := range next {
				do(item)
			}
		})
	}
	for _, item := range items {
		next <- item
	}
	close(next)
	workers.Wait()
}

// Looking are the options of Look.
type Looking struct {
	Thresholds func(sandbox.Sandbox) triage.Thresholds // of its profile and agent type
	Full       bool                                    // Observe each one, whatever decides
	Seen       func(done, all int)                     // is told how many were looked at; nil = nobody
}

// Look observes many sandboxes, as far as it can change the verdict whether they are stuck: one
// that the newest figures show at work is asked nothing else. The figures of many come in one
// request where the provider has such a request. report is called once for each sandbox,
// concurrently.
func (f *Fleet) Look(ctx context.Context, items []sandbox.Sandbox, how Looking, report func(i int, o Observation)) {
	count := &lookCount{all: len(items), seen: how.Seen}
	count.add(0)
	done := func(i int, o Observation) {
		report(i, o)
		count.add(1)
	}
	if how.Full {
		f.ForEach(items, func(i int) { done(i, f.Observe(ctx, items[i])) })
		return
	}
	f.forEachUnread(ctx, items, func(i int, u sandbox.Usage) bool {
		s := items[i]
		if !f.ShowsWork(s, []sandbox.Usage{u}, how.Thresholds(s)) {
			return false
		}
		done(i, f.ObserveUsage(ctx, s, []sandbox.Usage{u}, false))
		return true
	}, func(i int) { done(i, f.lookForLife(ctx, items[i], how.Thresholds(items[i]))) })
}

// lookCount counts the looks of many goroutines.
type lookCount struct {
	mu   sync.Mutex
	done int
	all  int
	seen func(done, all int)
}

func (c *lookCount) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done += n; c.seen != nil {
		c.seen(c.done, c.all)
	}
}

// lookForLife is ObserveLife that ends as soon as the figures show work.
func (f *Fleet) lookForLife(ctx context.Context, s sandbox.Sandbox, t triage.Thresholds) Observation {
	o := f.newObservation(s)
	o.Usage = f.readSamples(ctx, s, f.capturesOutput(s), nil)
	if o.Usage.Err == nil && triage.ShowsWork(o.Usage.Got, t) {
		o.Logs.Err = errNotAsked
		return f.concludeUsage(ctx, o)
	}
	return f.observeRest(ctx, o)
}

// ShowsWork reports whether the newest sample of a sandbox shows it at work, so that nothing else
// that may be observed of it makes its verdict stuck.
func (f *Fleet) ShowsWork(s sandbox.Sandbox, samples []sandbox.Usage, t triage.Thresholds) bool {
	return len(samples) > 0 && triage.SampleShowsWork(samples[len(samples)-1], t) && !f.mayProveSilence(s)
}

// ObserveUsage observes the usage of a sandbox alone, for one that shows work: the samples of
// the caller and, with trend, those that its provider stores.
func (f *Fleet) ObserveUsage(ctx context.Context, s sandbox.Sandbox, samples []sandbox.Usage, trend bool) Observation {
	o := f.newObservation(s)
	o.Logs.Err = errNotAsked
	if o.Usage.Got = samples; trend {
		o.Usage = f.readSamples(ctx, s, o.CapturesOutput, samples)
	}
	return f.concludeUsage(ctx, o)
}

// concludeUsage ends an observation of usage alone. What is recorded of the sandbox costs no request.
func (f *Fleet) concludeUsage(ctx context.Context, o Observation) Observation {
	o.recorded = f.o.History.OfSandbox(ctx, o.Sandbox)
	f.o.History.SandboxSeen(o)
	return o
}

// mayProveSilence reports whether some source may prove that a sandbox has been silent, which
// makes a busy one stuck.
func (f *Fleet) mayProveSilence(s sandbox.Sandbox) bool {
	m, err := f.findMember(s.Provider)
	return err != nil || s.ActivityBasis.ProvesSilence() || f.capturesOutput(s) || anyHasAbility[providers.ActivityReader](m.sources())
}

// readNewestUsage reads the newest usage of running sandboxes of one provider in batches, and calls
// take for each answer, concurrently. Once the provider answers that it has no such request, it is
// asked no more.
func (f *Fleet) readNewestUsage(ctx context.Context, m *member, reader providers.UsageBatchReader, items []sandbox.Sandbox, indexes []int, take func(i int, u sandbox.Usage)) {
	running := slices.DeleteFunc(slices.Clone(indexes), func(i int) bool { return items[i].State != sandbox.StateRunning })
	batches := slices.Collect(slices.Chunk(running, reader.UsageBatch()))
	read := func(batch []int) error {
		found, err := m.readUsageBatch(ctx, reader, items, batch)
		for _, i := range batch {
			if u, ok := found[items[i].ID]; ok {
				take(i, u)
			}
		}
		return err
	}
	if len(batches) > 0 && fault.KindOf(read(batches[0])) != fault.KindUnsupported {
		inWorkers(f.o.Slots, batches[1:], func(batch []int) { _ = read(batch) }) // what it misses is read by itself
	}
}

// readUsageBatch reads the newest usage of one batch by id, within one slot.
func (m *member) readUsageBatch(ctx context.Context, reader providers.UsageBatchReader, items []sandbox.Sandbox, batch []int) (map[string]sandbox.Usage, error) {
	ids := make([]string, len(batch))
	for n, i := range batch {
		ids[n] = items[i].ID
	}
	return callInSlot(ctx, m, "usage of several sandboxes", func(ctx context.Context) (map[string]sandbox.Usage, error) {
		return reader.UsageOfMany(ctx, ids)
	})
}
