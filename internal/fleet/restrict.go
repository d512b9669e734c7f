package fleet

import (
	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Restrict returns the fleet with the sandboxes of a rule alone, judged by these thresholds: all others
// are not listed, not counted and not found, so that nothing can end them. What it lists is neither
// kept nor recorded, since it is no complete listing of a provider.
func (f *Fleet) Restrict(shows func(sandbox.Sandbox) bool, thresholds triage.Thresholds) *Fleet {
	var members []*member
	for _, m := range f.members {
		one := *m
		one.shows, one.names, one.history = shows, nil, noHistory{}
		one.listing, one.second = &lastListing{}, newSecondListing()
		members = append(members, &one)
	}
	restricted := f.withMembers(members)
	restricted.o.Names, restricted.o.History = nil, noHistory{}
	restricted.o.Thresholds = func(sandbox.Sandbox) triage.Thresholds { return thresholds }
	return restricted
}

// hides says that a sandbox does not belong to this fleet.
func (m *member) hides(s sandbox.Sandbox) bool { return m.shows != nil && !m.shows(s) }

// hiddenError is the error of a sandbox that does not belong to this fleet.
func (m *member) hiddenError(word string) error {
	return fault.New(fault.KindNotFound, "%s is no sandbox of this run", word).At(m.Provider.Name(), "get "+word)
}

// countingReader reads the counters of a provider, which are of all its sandboxes.
func (m *member) countingReader() (providers.StatsReader, bool) { //nolint:ireturn // the ability of a provider
	if m.shows != nil {
		return nil, false
	}
	return providers.As[providers.StatsReader](m.Provider)
}
