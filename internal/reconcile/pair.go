package reconcile

import (
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// pair is the state of one sandbox on both sides.
type pair struct {
	profile string
	key     string // the provider's id, or the id of the record
	records []Record
	listed  *sandbox.Sandbox // nil = not in the listing
	look    idRead
}

// idRead is one read by id.
type idRead struct {
	asked   bool
	sandbox sandbox.Sandbox // where it exists
	err     error
	askedAt time.Time // when the read was requested, so that a suspended process does not make it newer
}

// isGone reports whether the provider denies it by id, the only proof of an absence.
func (l idRead) isGone() bool {
	kind := fault.KindOf(l.err)
	return l.asked && (kind == fault.KindNotFound || kind == fault.KindGone)
}

func (l idRead) hasFailed() bool { return l.err != nil && !l.isGone() }

// bestRead is the sandbox by the best available read; false = it does not exist, as far as
// was read.
func (p *pair) bestRead() (sandbox.Sandbox, bool) {
	switch {
	case p.look.asked && p.look.err == nil:
		return p.look.sandbox, true
	case p.look.asked || p.listed == nil:
		return sandbox.Sandbox{}, false
	}
	return *p.listed, true
}

func (p *pair) sandboxRef() sandbox.Ref { return sandbox.Ref{Provider: p.profile, ID: p.key} }

// claimsLife reports whether some record does not say that the sandbox has ended.
func (p *pair) claimsLife() bool {
	return slices.ContainsFunc(p.records, func(r Record) bool { return r.Live != sandbox.False })
}

// isLiving reports whether a sandbox of this state may still act or be resumed.
func isLiving(s sandbox.State) bool {
	switch s {
	case sandbox.StateProvisioning, sandbox.StateRunning, sandbox.StatePaused, sandbox.StateUnknown:
		return true
	case sandbox.StateStopped, sandbox.StateTerminating, sandbox.StateTerminated, sandbox.StateFailed:
	}
	return false
}

// needsRead reports whether the pair cannot be judged without a read by id.
func (p *pair) needsRead(confirm bool) bool {
	switch {
	case p.listed == nil:
		return p.claimsLife()
	case len(p.records) == 0:
		return !p.listed.State.Ended()
	case !p.claimsLife():
		return isLiving(p.listed.State)
	}
	return confirm || !isLiving(p.listed.State)
}

// joinPairs joins records with the sandboxes of one listing: by id, else by a unique name,
// else by labels, because a control plane may have ids of its own. A record whose labels
// several sandboxes carry belongs to each of them.
func joinPairs(profile string, records []Record, listing []sandbox.Sandbox) []*pair {
	var pairs []*pair
	byID, byName := map[string]*pair{}, map[string]*pair{}
	for _, s := range listing {
		if byID[s.ID] != nil {
			continue // a listing that changes while it is read may contain one twice
		}
		p := &pair{profile: profile, key: s.ID, listed: &s}
		byID[s.ID], pairs = p, append(pairs, p)
		if _, taken := byName[s.Name]; taken {
			p = nil
		}
		byName[s.Name] = p
	}
	for _, r := range records {
		p := byID[r.SandboxID]
		if p == nil {
			p = byName[r.SandboxID]
		}
		if linked := pairsByLabels(pairs, r); p == nil && len(linked) > 0 {
			for _, p := range linked {
				p.records = append(p.records, r)
			}
			continue
		}
		if p == nil {
			p = &pair{profile: profile, key: r.SandboxID}
			byID[r.SandboxID], pairs = p, append(pairs, p)
		}
		p.records = append(p.records, r)
	}
	return pairs
}

// pairsByLabels are the pairs whose listed sandbox carries every label of the record.
func pairsByLabels(pairs []*pair, r Record) []*pair {
	var found []*pair
	for _, p := range pairs {
		if p.listed != nil && r.labelsMatch(*p.listed) {
			found = append(found, p)
		}
	}
	return found
}

// labelsMatch reports whether the sandbox carries every label of the record.
func (r Record) labelsMatch(s sandbox.Sandbox) bool {
	for key, value := range r.Labels {
		if s.Labels[key] != value {
			return false
		}
	}
	return len(r.Labels) > 0
}

// mergePairs merges the pairs that are one sandbox by their reads: a record may use another
// id than the listing, or than another record.
func mergePairs(pairs []*pair) []*pair {
	byID := map[string]*pair{}
	for _, p := range pairs {
		if p.listed != nil {
			byID[p.key] = p
		}
	}
	return slices.DeleteFunc(pairs, func(p *pair) bool {
		id := p.look.sandbox.ID
		if p.listed != nil || id == "" {
			return false
		}
		other := byID[id]
		if other == nil {
			byID[id] = p
			return false
		}
		other.records = append(other.records, p.records...)
		other.look = p.look
		return true
	})
}

// uniqueNames reports for each name whether only one sandbox has it, so that a record with
// the name is unambiguous.
func uniqueNames(pairs []*pair) map[string]bool {
	names := map[string]bool{}
	for _, p := range pairs {
		if box, ok := p.bestRead(); ok {
			_, taken := names[box.Name]
			names[box.Name] = !taken && box.Name != ""
		}
	}
	return names
}
