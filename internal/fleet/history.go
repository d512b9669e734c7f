package fleet

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// History reads what is recorded outside the providers: the tasks of sbx and the runs of
// cleanup. Every observation uses it, so that all commands judge by the same facts. An
// implementation reads a bounded amount and caches it for a short time. What it cannot read
// is unknown: it returns no error, and no observation fails because of it.
type History interface {
	// OfSandbox returns what the records say of the work in one sandbox.
	OfSandbox(ctx context.Context, s sandbox.Sandbox) SandboxHistory
	// OfProfile returns the figures of a profile that no provider reports: cleanup runs,
	// earlier counts, creates that failed, attempts that timed out.
	OfProfile(ctx context.Context, profile string) triage.FleetSignals
	// EndingSince is the first look since which every complete listing has shown a sandbox as
	// terminating; zero = none has.
	EndingSince(ctx context.Context, ref sandbox.Ref) time.Time
	// ListingSeen takes the counts of each complete listing, the sandboxes in it that failed, and the
	// ids of those that are terminating; SandboxSeen takes each observation. They keep it for later runs,
	// are called concurrently, and must not wait.
	ListingSeen(profile string, counts map[sandbox.State]int64, failed []sandbox.Sandbox, ending []string)
	SandboxSeen(o Observation)
}

// SandboxHistory is what is recorded of one sandbox; zero values mean "not known".
type SandboxHistory struct {
	Finished      sandbox.Verdict  // its task is over, or the task's program has exited
	FinishedBy    sandbox.Evidence // of a Finished that is true
	TimeLimitsHit *int             // by its task, and by the task that this one resumes
	Samples       []sandbox.Usage  // of earlier looks, the oldest first
}

// noHistory is the history without records.
type noHistory struct{}

func (noHistory) OfSandbox(context.Context, sandbox.Sandbox) SandboxHistory { return SandboxHistory{} }

func (noHistory) OfProfile(context.Context, string) triage.FleetSignals { return triage.FleetSignals{} }

func (noHistory) EndingSince(context.Context, sandbox.Ref) time.Time { return time.Time{} }

func (noHistory) ListingSeen(string, map[sandbox.State]int64, []sandbox.Sandbox, []string) {}

func (noHistory) SandboxSeen(Observation) {}

// lastListing is the result of the last complete listing of a profile in this process, for
// observations that need no listing of their own.
type lastListing struct {
	mu     sync.Mutex
	count  *listingCount      // nil = no complete listing yet
	shared []*sandbox.Sandbox // of the last complete one of LiveStats

	unlisted []sandbox.Sandbox // see Fleet.Unlisted
}

// listingCount counts the sandboxes of a listing.
type listingCount struct {
	states map[sandbox.State]int64
	failed []sandbox.Sandbox // at most maxFailed
	ending []string          // ids of those that are terminating, at most maxEnding
	since  []time.Time       // start of each running sandbox of known age, by this machine's clock

	sorting sync.Once // of since, when all are counted
}

// newListingCount has counted nothing, and has room for about so many.
func newListingCount(room int) *listingCount {
	return &listingCount{states: make(map[sandbox.State]int64), since: make([]time.Time, 0, room+room/16)}
}

func countListing(items iter.Seq[*sandbox.Sandbox], room int, now time.Time) *listingCount {
	c := newListingCount(room)
	for s := range items {
		c.add(s, now)
	}
	return c
}

func (c *listingCount) add(s *sandbox.Sandbox, now time.Time) {
	c.states[s.State]++
	if s.Failed() && len(c.failed) < maxFailed {
		c.failed = append(c.failed, *s)
	}
	if s.State == sandbox.StateTerminating && len(c.ending) < maxEnding {
		c.ending = append(c.ending, s.ID)
	}
	if age, source := s.Age(now); s.State == sandbox.StateRunning && source != sandbox.AgeUnknown {
		c.since = append(c.since, now.Add(-age))
	}
}

// maxFailed is how many failed sandboxes of one listing are remembered.
const maxFailed = 200

// maxEnding is how many terminating sandboxes of one listing are remembered.
const maxEnding = 1000

func (c *listingCount) stats() providers.Stats {
	return providers.Stats{
		Active: new(c.states[sandbox.StateRunning]), Provisioning: new(c.states[sandbox.StateProvisioning]), Terminating: new(c.states[sandbox.StateTerminating]),
	}
}

// olderThan is the number of running sandboxes older than an age.
func (c *listingCount) olderThan(age time.Duration, now time.Time) *int64 {
	c.sorting.Do(func() { slices.SortFunc(c.since, time.Time.Compare) }) // each of ten thousand looks asks
	old, _ := slices.BinarySearchFunc(c.since, now.Add(-age), time.Time.Compare)
	return new(int64(old))
}

func (l *lastListing) keepCount(c *listingCount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count = c
}

// rows is how many the last complete listing had.
func (l *lastListing) rows() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == nil {
		return 0
	}
	n := int64(0)
	for _, of := range l.count.states {
		n += of
	}
	return int(n)
}

// addTo adds the counts of the listing, if any was complete.
func (l *lastListing) addTo(sig *triage.FleetSignals, stuckAge time.Duration, now time.Time) {
	l.mu.Lock()
	c := l.count
	l.mu.Unlock()
	if c == nil {
		return
	}
	stats := c.stats()
	sig.Active, sig.Provisioning, sig.Terminating = stats.Active, stats.Provisioning, stats.Terminating
	sig.OverStuckAge = c.olderThan(stuckAge, now)
	addSample(sig, now)
}

// addSample appends the present count to the history.
func addSample(sig *triage.FleetSignals, now time.Time) {
	if sig.Active != nil {
		sig.History = slices.Concat(sig.History, []triage.ActiveCount{{At: now, Active: *sig.Active}})
	}
}

// coversAll reports whether a query leaves out no live sandbox.
func coversAll(q providers.Query) bool {
	return len(q.States) == 0 && len(q.Labels) == 0
}

// quotaUsed caches the highest use of a quota of the account, as first read in this
// process.
type quotaUsed struct {
	mu    sync.Mutex // never held during a request
	asked bool
	used  *float64 // nil = not known
}

func (m *member) quotaShare(ctx context.Context) *float64 {
	reader, ok := providers.As[providers.QuotaReader](m.Provider)
	if !ok {
		return nil
	}
	q := m.quota
	q.mu.Lock()
	asked, used := q.asked, q.used
	q.mu.Unlock()
	if asked {
		return used
	}
	quotas, err := callInSlot(ctx, m, "quota", reader.Quota)
	if err != nil {
		return nil
	}
	if share, _, known := providers.HighestUse(quotas); known {
		used = &share
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked, q.used = true, used
	return used
}

// observeHistory adds what is recorded of the sandbox and of its profile.
func (f *Fleet) observeHistory(ctx context.Context, o *Observation) {
	s := o.Sandbox
	o.recorded = f.o.History.OfSandbox(ctx, s)
	profile := f.o.History.OfProfile(ctx, s.Provider)
	m, err := f.findMember(s.Provider)
	if err == nil && s.State == sandbox.StateProvisioning { // the quota of the account may be used up
		profile.QuotaUsed = m.quotaShare(ctx)
	}
	o.profileSignals = func(stuckAge time.Duration) *triage.FleetSignals {
		all := profile
		if err == nil {
			m.listing.addTo(&all, stuckAge, f.o.Now())
		}
		return &all
	}
}

// finishedVerdict combines the records of the sandbox's work with the exit of its program.
func (o Observation) finishedVerdict() (sandbox.Verdict, sandbox.Evidence) {
	exit := cmp.Or(o.Exit.Got, o.Sandbox.Exit)
	switch {
	case o.recorded.Finished == sandbox.True:
		return sandbox.True, o.recorded.FinishedBy
	case exit != nil && o.Sandbox.State == sandbox.StateRunning:
		return sandbox.True, sandbox.Evidence{What: "its program", Value: "has exited", Source: "exit"}
	}
	return o.recorded.Finished, sandbox.Evidence{}
}

// waitsVerdict reports whether the agent's last report is that it waits for a message; "" =
// no source reports it.
func (o Observation) waitsVerdict() sandbox.Verdict {
	if o.Work.Err != nil || o.Work.Got.WaitsSince.IsZero() {
		return ""
	}
	return sandbox.VerdictOf(!o.Work.Got.LastWorkAt.After(o.Work.Got.WaitsSince))
}

// Signals returns the figures of one profile for the rules: the counters of the provider, or
// of a complete listing, and the history.
func (s ProviderStats) Signals(stuckAge time.Duration, now time.Time) triage.FleetSignals {
	sig := s.History
	sig.Active, sig.Provisioning, sig.Terminating = s.Stats.Active, s.Stats.Provisioning, s.Stats.Terminating
	sig.TotalCreated, sig.TotalDestroyed, sig.TimedOut = s.Stats.TotalCreated, s.Stats.TotalDestroyed, s.Stats.TimedOut
	addSample(&sig, now)
	if s.ItemsErr == nil {
		sig.OverStuckAge = countListing(s.Listed(), s.rows(), now).olderThan(stuckAge, now)
		addListedExits(&sig, s.Listed())
	}
	return sig
}

// addListedExits counts the exits of a listing among the attempts: of sandboxes whose provider
// tells how they ended. Those of a task of sbx are counted by the task.
func addListedExits(sig *triage.FleetSignals, items iter.Seq[*sandbox.Sandbox]) {
	var ended, timedOut int64
	for s := range items {
		if s.Exit == nil || s.Exit.Class == "" || strings.HasPrefix(s.TaskID, sandbox.TaskIDPrefix) {
			continue
		}
		if ended++; s.Exit.Class == sandbox.ClassTimeout {
			timedOut++
		}
	}
	if ended == 0 {
		return
	}
	add := func(to **int64, n int64) {
		if *to != nil {
			n += **to
		}
		*to = &n
	}
	add(&sig.Attempts, ended)
	add(&sig.AttemptsTimedOut, timedOut)
}

// ProfileSignals returns the figures of a profile as far as this process has read them: the
// records, the last complete listing, and the quota, if it was read. It requests nothing.
func (f *Fleet) ProfileSignals(ctx context.Context, profile string, stuckAge time.Duration) triage.FleetSignals {
	sig := f.o.History.OfProfile(ctx, profile)
	if m, err := f.findMember(profile); err == nil {
		m.listing.addTo(&sig, stuckAge, f.o.Now())
		m.quota.mu.Lock()
		sig.QuotaUsed = m.quota.used
		m.quota.mu.Unlock()
	}
	return sig
}

// ProviderStats are the figures of one profile.
type ProviderStats struct {
	Provider     string
	ProviderType string
	Stats        providers.Stats
	Err          error
	// Items is the complete listing, for ages and stuck sandboxes. It is nil where ItemsErr
	// says why it is incomplete.
	Items    []sandbox.Sandbox
	Shared   []*sandbox.Sandbox // of LiveStats, in place of Items; nobody may change them
	ItemsErr error
	History  triage.FleetSignals // of the profile, from Options.History
	// MayRun are not listed, and their requested end is not proved: until it is, they count as running.
	MayRun []sandbox.Ref
}

// Listed are the sandboxes of the listing.
func (s ProviderStats) Listed() iter.Seq[*sandbox.Sandbox] {
	return func(yield func(*sandbox.Sandbox) bool) {
		for i := range s.Items {
			if !yield(&s.Items[i]) {
				return
			}
		}
		for _, one := range s.Shared {
			if !yield(one) {
				return
			}
		}
	}
}

func (s ProviderStats) rows() int { return len(s.Items) + len(s.Shared) }

// Stats reads the figures of every provider at once, in the order of the fleet: the
// provider's own counters, or the counts of a complete listing. An incomplete listing gives
// an error and no figures.
func (f *Fleet) Stats(ctx context.Context) []ProviderStats {
	ends := f.newRequestCache()
	return inParallel(f.members, func(m *member) ProviderStats {
		return f.memberStats(ctx, m, ends, func(s *ProviderStats, one *Fleet) {
			if l := one.Collect(ctx, providers.Query{}); l.Complete() {
				s.Items = l.Items
			} else {
				s.ItemsErr = l.Err()
			}
		})
	})
}

// LiveStats is Stats for a screen that reads them again and again (providers.Query.Live). A sandbox whose record has not
// changed is the one of the listing before, so that memory holds ten thousand of them once.
func (f *Fleet) LiveStats(ctx context.Context) []ProviderStats {
	ends := f.newRequestCache()
	return inParallel(f.members, func(m *member) ProviderStats {
		return f.memberStats(ctx, m, ends, func(s *ProviderStats, one *Fleet) {
			s.Shared, s.ItemsErr = m.collectShared(one.List(ctx, providers.Query{Live: true}))
		})
	})
}

func (f *Fleet) memberStats(ctx context.Context, m *member, ends *requestCache, list func(s *ProviderStats, one *Fleet)) ProviderStats {
	s := ProviderStats{Provider: m.Provider.Name(), ProviderType: m.Provider.Type(), History: f.o.History.OfProfile(ctx, m.Provider.Name())}
	if m.MaxSandboxes > 0 {
		s.History.MaxSandboxes = new(int64(m.MaxSandboxes))
	}
	list(&s, f.withMembers([]*member{m}))
	if reader, ok := m.countingReader(); ok {
		s.Stats, s.Err = callWithTimeout(ctx, m, "stats", reader.Stats)
	} else if s.Err = s.ItemsErr; s.Err == nil {
		s.Stats = countListing(s.Listed(), s.rows(), f.o.Now()).stats()
	}
	if s.ItemsErr == nil && s.Stats.Active != nil {
		s.MayRun = ends.unlistedEnds(ctx, m, s.Listed())
		s.Stats.Active = new(*s.Stats.Active + int64(len(s.MayRun)))
	}
	return s
}
