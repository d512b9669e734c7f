package fleet

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// History tells what is on record beside the providers: the tasks of sbx and the runs of
// cleanup. Every look at a sandbox asks it, so that all verbs judge by the same facts. An
// implementation reads a bounded amount and keeps it for a short time. What it cannot
// read is unknown: it returns no error, and no look fails for it.
type History interface {
	// OfSandbox tells what the records say of the work in one sandbox.
	OfSandbox(ctx context.Context, s sandbox.Sandbox) SandboxHistory
	// OfProfile tells of a profile as a whole what no provider tells: cleanup runs, earlier
	// counts, creates that failed, attempts that timed out.
	OfProfile(ctx context.Context, profile string) triage.FleetSignals
}

// SandboxHistory is what records say of one sandbox; zero values mean "not known".
type SandboxHistory struct {
	Finished      sandbox.Verdict  // its task is over, or the task's program has exited
	FinishedBy    sandbox.Evidence // of a Finished that is true
	TimeLimitsHit *int             // by its task, and by the task that this one resumes
}

// noHistory is the history where nothing is recorded.
type noHistory struct{}

func (noHistory) OfSandbox(context.Context, sandbox.Sandbox) SandboxHistory { return SandboxHistory{} }

func (noHistory) OfProfile(context.Context, string) triage.FleetSignals { return triage.FleetSignals{} }

// lastListing is what the last complete listing of a profile has shown in this process.
// It costs no request, so a look that needed no listing does without it.
type lastListing struct {
	mu     sync.Mutex
	counts *providers.Stats // nil = no listing was complete yet
	since  []time.Time      // when each of the running ones began, by this machine's clock; those of unknown age are not in it
}

// listingCount counts a listing on its way.
type listingCount struct {
	items map[sandbox.State]int64
	since []time.Time
}

func newListingCount() listingCount { return listingCount{items: make(map[sandbox.State]int64)} }

func (c *listingCount) add(s sandbox.Sandbox, now time.Time) {
	c.items[s.State]++
	if age, source := s.Age(now); s.State == sandbox.StateRunning && source != sandbox.AgeUnknown {
		c.since = append(c.since, now.Add(-age))
	}
}

func (l *lastListing) keep(c listingCount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts, l.since = new(countStates(c.items)), c.since
}

// signals are the counts of the listing; nil where none was complete.
func (l *lastListing) signals(sig *triage.FleetSignals, stuckAge time.Duration, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		return
	}
	old := int64(0)
	for _, at := range l.since {
		if now.Sub(at) > stuckAge {
			old++
		}
	}
	sig.Active, sig.Provisioning, sig.Terminating = l.counts.Active, l.counts.Provisioning, l.counts.Terminating
	sig.OverStuckAge = &old
	addSample(sig, now)
}

// addSample makes the count of now the newest sample of the history.
func addSample(sig *triage.FleetSignals, now time.Time) {
	if sig.Active != nil {
		sig.History = slices.Concat(sig.History, []triage.ActiveCount{{At: now, Active: *sig.Active}})
	}
}

// everything says that a query leaves out nothing that lives.
func everything(q providers.Query) bool {
	return len(q.States) == 0 && len(q.Labels) == 0 && q.Limit == 0
}

// quotaUsed is the largest share of a quota of the account that is in use, as it was
// told first in this process.
type quotaUsed struct {
	mu    sync.Mutex // never held while anything is asked
	asked bool
	used  *float64 // nil = not known
}

func (m *member) quotaShare(ctx context.Context) *float64 {
	reader, tells := providers.As[providers.QuotaReader](m.Provider)
	if !tells {
		return nil
	}
	q := m.quota
	q.mu.Lock()
	asked, used := q.asked, q.used
	q.mu.Unlock()
	if asked {
		return used
	}
	quotas, err := call(ctx, m, "quota", reader.Quota)
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

// observeHistory adds what is on record of the sandbox and of its profile.
func (f *Fleet) observeHistory(ctx context.Context, o *Observation) {
	s := o.Sandbox
	o.past = f.o.History.OfSandbox(ctx, s)
	profile := f.o.History.OfProfile(ctx, s.Provider)
	m, err := f.member(s.Provider)
	if err == nil && s.State == sandbox.StateProvisioning { // the account may have no room left for it
		profile.QuotaUsed = m.quotaShare(ctx)
	}
	o.profile = func(stuckAge time.Duration) *triage.FleetSignals {
		all := profile
		if err == nil {
			m.listing.signals(&all, stuckAge, f.o.Now())
		}
		return &all
	}
}

// finished joins what the records say of the sandbox's work with what its program did.
func (o Observation) finished() (sandbox.Verdict, sandbox.Evidence) {
	exit := cmp.Or(o.Exit.Got, o.Sandbox.Exit)
	switch {
	case o.past.Finished == sandbox.True:
		return sandbox.True, o.past.FinishedBy
	case exit != nil && o.Sandbox.State == sandbox.StateRunning:
		return sandbox.True, sandbox.Evidence{What: "its program", Value: "has exited", Source: "exit"}
	}
	return o.past.Finished, sandbox.Evidence{}
}

// waits says that the agent's last report is that it waits for a message; "" = no source tells.
func (o Observation) waits() sandbox.Verdict {
	if o.Work.Err != nil || o.Work.Got.WaitsSince.IsZero() {
		return ""
	}
	return sandbox.VerdictOf(!o.Work.Got.LastWorkAt.After(o.Work.Got.WaitsSince))
}

// Signals are the figures of one profile as the rules take them: the counters of the
// provider, or of a complete listing, and what is on record.
func (s ProviderStats) Signals(stuckAge time.Duration, now time.Time) triage.FleetSignals {
	sig := s.History
	sig.Active, sig.Provisioning, sig.Terminating = s.Stats.Active, s.Stats.Provisioning, s.Stats.Terminating
	sig.TotalCreated, sig.TotalDestroyed, sig.TimedOut = s.Stats.TotalCreated, s.Stats.TotalDestroyed, s.Stats.TimedOut
	addSample(&sig, now)
	if s.ItemsErr != nil {
		return sig
	}
	c := newListingCount()
	for _, box := range s.Items {
		c.add(box, now)
	}
	var listed triage.FleetSignals
	l := lastListing{}
	l.keep(c)
	l.signals(&listed, stuckAge, now)
	sig.OverStuckAge = listed.OverStuckAge
	return sig
}
