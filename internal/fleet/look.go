package fleet

import (
	"context"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// looksPerSlot is how many sandboxes of one provider are looked at at once, for each slot, and how many
// more wait for one sandbox alone: a look also waits between two samples, and then it holds no slot. Ten
// thousand goroutines that wait cost more than the looks themselves.
const looksPerSlot = 16

// ForEach calls do for every sandbox and returns when all calls have returned: the providers at
// once, since a silent one must not delay the others, and a bounded number of the sandboxes of
// each. do is called concurrently.
func (f *Fleet) ForEach(items []sandbox.Sandbox, do func(i int)) {
	f.forEachProvider(items, func(_ string, indexes []int) {
		inWorkers(f.o.Slots*looksPerSlot, indexes, func(i int, _ *place) { do(i) })
	})
}

// forEachUnread is ForEach after take was called with the newest usage of each sandbox, as far as
// its provider reads the usage of many in one request. do is called where take returned false,
// and where that usage is not known.
func (f *Fleet) forEachUnread(ctx context.Context, items []sandbox.Sandbox, take func(i int, u sandbox.Usage) bool, do func(ctx context.Context, i int)) {
	taken := make([]bool, len(items)) // each is written by one goroutine
	f.forEachProvider(items, func(profile string, indexes []int) {
		if m, reader, err := requireAbility[providers.UsageBatchReader](f, profile, "usage"); err == nil {
			f.readNewestUsage(ctx, m, reader, items, indexes, func(i int, u sandbox.Usage) { taken[i] = take(i, u) })
		}
		rest := slices.DeleteFunc(slices.Clone(indexes), func(i int) bool { return taken[i] })
		f.inLooks(ctx, rest, do)
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

// inLooks calls do for every index, for a bounded number at once. A call of the context that waits for
// one sandbox alone makes room for another look.
func (f *Fleet) inLooks(ctx context.Context, indexes []int, do func(ctx context.Context, i int)) {
	inWorkers(f.o.Slots*looksPerSlot, indexes, func(i int, worker *place) { do(withWorker(ctx, worker), i) })
}

// Looking are the options of Look.
type Looking struct {
	Thresholds func(sandbox.Sandbox) triage.Thresholds // of its profile and agent type
	Full       bool                                    // Observe each one, whatever decides
	Seen       func(LookProgress)                      // is told how far it is, by one goroutine at a time; nil = nobody
}

// LookProgress is how far a look at many sandboxes is.
type LookProgress struct {
	Done, All int
	Waiting   map[string]int // how many of a profile are being asked and have not answered; the receiver must not keep it
}

// Look observes many sandboxes, as far as it can change the verdict whether they are stuck: one
// that the newest figures show at work is asked nothing else. The figures of many come in one
// request where the provider has such a request. report is called once for each sandbox,
// concurrently. It ends a little before the deadline of ctx: what has not answered by then fails with
// the error of a context that ended (see FailedLooks), and what has is kept.
func (f *Fleet) Look(ctx context.Context, items []sandbox.Sandbox, how Looking, report func(i int, o Observation)) {
	ctx, stop := limitLook(ctx)
	defer stop()
	f.look(ctx, items, how, newLookCount(len(items), how.Seen), report)
}

func (f *Fleet) look(ctx context.Context, items []sandbox.Sandbox, how Looking, count *lookCount, report func(i int, o Observation)) {
	one := func(i int, observe func(sandbox.Sandbox) Observation) {
		defer count.begin(items[i].Provider)()
		report(i, observe(items[i]))
	}
	if how.Full {
		f.forEachProvider(items, func(_ string, indexes []int) {
			f.inLooks(ctx, indexes, func(ctx context.Context, i int) {
				one(i, func(s sandbox.Sandbox) Observation { return f.Observe(ctx, s) })
			})
		})
		return
	}
	busy := make([]*sandbox.Usage, len(items)) // the newest sample of those at their limit; each is written by one goroutine
	f.forEachUnread(ctx, items, func(i int, u sandbox.Usage) bool {
		s := items[i]
		t := how.Thresholds(s)
		if triage.SampleAtLimit(u, t) {
			busy[i] = &u
		}
		if !f.ShowsWork(s, []sandbox.Usage{u}, t) {
			return false
		}
		one(i, func(s sandbox.Sandbox) Observation { return f.ObserveUsage(ctx, s, []sandbox.Usage{u}, false) })
		return true
	}, func(ctx context.Context, i int) {
		one(i, func(s sandbox.Sandbox) Observation { return f.lookForLife(ctx, s, how.Thresholds(s), busy[i]) })
	})
}

// concludeTime is what a look leaves of its caller's time, at most a tenth of it: without time to
// conclude, also what has answered would be lost.
const concludeTime = 5 * time.Second

func limitLook(ctx context.Context) (context.Context, context.CancelFunc) {
	limit, bounded := ctx.Deadline()
	if !bounded {
		return ctx, func() {}
	}
	left := time.Until(limit)
	return context.WithTimeoutCause(ctx, left-min(left/10, concludeTime), fault.New(fault.KindTimeout, "the look reached its limit"))
}

// lookCount counts the looks of many goroutines.
type lookCount struct {
	mu   sync.Mutex
	at   LookProgress
	seen func(LookProgress)
}

func newLookCount(all int, seen func(LookProgress)) *lookCount {
	c := &lookCount{at: LookProgress{All: all, Waiting: map[string]int{}}, seen: seen}
	c.change(func(*LookProgress) {})
	return c
}

// begin counts a sandbox that is asked, until it has answered.
func (c *lookCount) begin(profile string) (answered func()) {
	c.change(func(p *LookProgress) { p.Waiting[profile]++ })
	return func() {
		c.change(func(p *LookProgress) {
			p.Done++
			if p.Waiting[profile]--; p.Waiting[profile] == 0 {
				delete(p.Waiting, profile)
			}
		})
	}
}

func (c *lookCount) change(do func(*LookProgress)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if do(&c.at); c.seen != nil {
		c.seen(c.at)
	}
}

// lookForLife is ObserveLife that ends as soon as the figures show work, or a processor at its limit and new output do.
// busy is a sample at the limit that was read with those of others; nil = there is none.
func (f *Fleet) lookForLife(ctx context.Context, s sandbox.Sandbox, t triage.Thresholds, busy *sandbox.Usage) Observation {
	look := providers.Look(ctx)
	o := f.newObservation(s)
	if busy != nil {
		o.logsAt = f.o.Now()
		o.Logs = f.tail(look, s.Ref(), tailLines, !mayHaveProgram(s))
		if o.printsAtWork(t, o.Sandbox.Clock(f.o.Now())) {
			o.Usage.Got = []sandbox.Usage{*busy}
			return f.concludeUsage(ctx, o)
		}
	}
	o.Usage = f.readSamples(look, s, o.CapturesOutput, nil)
	if o.Usage.Err == nil && triage.ShowsWork(o.Usage.Got, t) {
		o.Logs.Err = errNotAsked
		return f.concludeUsage(ctx, o)
	}
	return f.observeSigns(ctx, look, o, nil)
}

// printsAtWork reports whether the end of the log shows a sandbox at work whose processor is at its limit.
func (o *Observation) printsAtWork(t triage.Thresholds, now time.Time) bool {
	if o.Logs.Err != nil {
		return false
	}
	o.readLogs(triage.NewMatcher())
	return triage.OutputShowsWork(o.Sandbox, *o.logFindings, t, now)
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
		o.Usage = f.readSamples(providers.Look(ctx), s, o.CapturesOutput, samples)
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
func (f *Fleet) readNewestUsage(
	ctx context.Context, m *member, reader providers.UsageBatchReader, items []sandbox.Sandbox, indexes []int, take func(i int, u sandbox.Usage),
) {
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
		inWorkers(f.o.Slots, batches[1:], func(batch []int, _ *place) { _ = read(batch) }) // what it misses is read by itself
	}
}

// readUsageBatch reads the newest usage of one batch by id, within one slot.
func (m *member) readUsageBatch(
	ctx context.Context, reader providers.UsageBatchReader, items []sandbox.Sandbox, batch []int,
) (map[string]sandbox.Usage, error) {
	ids := make([]string, len(batch))
	for n, i := range batch {
		ids[n] = items[i].ID
	}
	return callInSlot(ctx, m, "usage of several sandboxes", func(ctx context.Context) (map[string]sandbox.Usage, error) {
		return reader.UsageOfMany(ctx, ids)
	})
}
