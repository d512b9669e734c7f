package fleet

import (
	"cmp"
	"maps"
	"slices"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// lastRows are the sandboxes of the last complete listing of an earlier process that had not ended, by
// id; nil = none is kept, or the listing that begins leaves some out, or a screen repeats it.
func (m *member) lastRows(q providers.Query) map[string]sandbox.Sandbox {
	if m.names == nil || m.shows != nil || !coversAll(q) || q.Live || !m.names.Caches(m.Provider.Name()) {
		return nil
	}
	rows := map[string]sandbox.Sandbox{}
	for _, s := range m.names.Read(m.Provider.Name()) {
		if !s.State.Ended() && s.State != sandbox.StateTerminating {
			rows[s.ID] = s
		}
	}
	return rows
}

// keepUnlisted keeps the rows of the last listing that a complete one did not have.
func (l *lastListing) keepUnlisted(rows map[string]sandbox.Sandbox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unlisted = slices.Collect(maps.Values(rows))
}

// Unlisted returns the sandboxes of the last complete listings that an earlier process has kept which the
// newest complete listing of this process does not have, sorted. They have ended meanwhile, or the list
// leaves them out.
func (f *Fleet) Unlisted() []sandbox.Sandbox {
	var all []sandbox.Sandbox
	for _, m := range f.members {
		m.listing.mu.Lock()
		all = append(all, m.listing.unlisted...)
		m.listing.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b sandbox.Sandbox) int { return cmp.Compare(a.Ref().String(), b.Ref().String()) })
	return all
}

// SettleUnlisted takes what was found out about Unlisted: those to read again stay in the kept listing,
// the others are forgotten.
func (f *Fleet) SettleUnlisted(again []sandbox.Sandbox) {
	for _, m := range f.members {
		m.listing.mu.Lock()
		unlisted := m.listing.unlisted
		m.listing.unlisted = nil
		m.listing.mu.Unlock()
		if len(unlisted) == 0 {
			continue
		}
		var settled []string
		var kept []sandbox.Sandbox
		for _, s := range unlisted {
			if slices.ContainsFunc(again, func(a sandbox.Sandbox) bool { return a.Ref() == s.Ref() }) {
				kept = append(kept, s)
			} else {
				settled = append(settled, s.ID)
			}
		}
		f.o.Names.Drop(m.Provider.Name(), settled)
		f.o.Names.AddUnlisted(m.Provider.Name(), kept)
	}
}
