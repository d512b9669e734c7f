package fleet

import (
	"context"
	"sync"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// ProviderStats are the figures of one profile.
type ProviderStats struct {
	Provider     string
	ProviderType string
	Stats        providers.Stats
	Counted      bool // from the listing: the provider has no counters, lifetime totals are nil
	Err          error
	// Items is the complete listing, for ages and what is stuck. It is nil
	// where ItemsErr says why it could not be read to its end.
	Items    []sandbox.Sandbox
	ItemsErr error
	History  triage.FleetSignals // what is on record of the profile: Options.History
}

// Stats reads the figures of every provider at once, in the order of the
// fleet: the provider's own counters, or those of a complete listing. An
// incomplete listing gives an error and no figures.
func (f *Fleet) Stats(ctx context.Context) []ProviderStats {
	all := make([]ProviderStats, len(f.members))
	var wg sync.WaitGroup
	for i, m := range f.members {
		wg.Go(func() { all[i] = f.stats(ctx, m) })
	}
	wg.Wait()
	return all
}

func (f *Fleet) stats(ctx context.Context, m *member) ProviderStats {
	s := ProviderStats{Provider: m.Provider.Name(), ProviderType: m.Provider.Type(), History: f.o.History.OfProfile(ctx, m.Provider.Name())}
	alone := &Fleet{members: []*member{m}, o: f.o, note: f.note, matcher: f.matcher}
	if l := alone.Collect(ctx, providers.Query{}); l.Complete() {
		s.Items = l.Items
	} else {
		s.ItemsErr = l.Err()
	}
	if reader, ok := providers.As[providers.StatsReader](m.Provider); ok {
		s.Stats, s.Err = bounded(ctx, m, "stats", reader.Stats)
		return s
	}
	s.Counted, s.Err = true, s.ItemsErr
	if s.Err == nil {
		s.Stats = count(s.Items)
	}
	return s
}

// count is what a complete listing says; how many there ever were it cannot.
func count(items []sandbox.Sandbox) providers.Stats {
	states := make(map[sandbox.State]int64)
	for _, s := range items {
		states[s.State]++
	}
	return countStates(states)
}

func countStates(n map[sandbox.State]int64) providers.Stats {
	return providers.Stats{
		Active: new(n[sandbox.StateRunning]), Provisioning: new(n[sandbox.StateProvisioning]), Terminating: new(n[sandbox.StateTerminating]),
	}
}
