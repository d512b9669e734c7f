package reconcile

import (
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// pair is what both sides say of one sandbox.
type pair struct {
	profile string
	key     string // the provider's id, or what the record calls it
	records []Record
	listed  *sandbox.Sandbox // nil = not in the listing
	look    look
}

// look is one read by id.
type look struct {
	asked bool
	box   sandbox.Sandbox // where it is there
	err   error
	at    time.Time // when it was asked for, so that a process which stands still makes no look younger
}

// gone says that the provider denies it by id: nothing else proves an absence.
func (l look) gone() bool {
	kind := fault.KindOf(l.err)
	return l.asked && (kind == fault.KindNotFound || kind == fault.KindGone)
}

func (l look) failed() bool { return l.err != nil && !l.gone() }

// box is the sandbox by the best read that there is; false = there is none, as far
// as was looked.
func (p *pair) box() (sandbox.Sandbox, bool) {
	switch {
	case p.look.asked && p.look.err == nil:
		return p.look.box, true
	case p.look.asked || p.listed == nil:
		return sandbox.Sandbox{}, false
	}
	return *p.listed, true
}

func (p *pair) ref() sandbox.Ref { return sandbox.Ref{Provider: p.profile, ID: p.key} }

// claims says that some record does not take the sandbox for ended.
func (p *pair) claims() bool {
	return slices.ContainsFunc(p.records, func(r Record) bool { return r.Live != sandbox.False })
}

// living says that the sandbox could still do something or be made to.
func living(s sandbox.State) bool {
	switch s {
	case sandbox.StateProvisioning, sandbox.StateRunning, sandbox.StatePaused, sandbox.StateUnknown:
		return true
	case sandbox.StateStopped, sandbox.StateTerminating, sandbox.StateTerminated, sandbox.StateFailed:
	}
	return false
}

// askable says that the pair cannot be judged without a read by id.
func (p *pair) askable(confirm bool) bool {
	switch {
	case p.listed == nil:
		return p.claims()
	case len(p.records) == 0:
		return !p.listed.State.Ended()
	case !p.claims():
		return living(p.listed.State)
	}
	return confirm || !living(p.listed.State)
}

// join pairs records with the sandboxes of one listing, by id, else by a name that
// is nobody else's, else by labels: a control plane may have ids of its own. A record
// that several sandboxes carry the labels of is about each of them.
func join(profile string, records []Record, listing []sandbox.Sandbox) []*pair {
	var pairs []*pair
	byID, byName := map[string]*pair{}, map[string]*pair{}
	for _, s := range listing {
		if byID[s.ID] != nil {
			continue // a listing that moves while it is read shows one twice
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
		if linked := labelled(pairs, r); p == nil && len(linked) > 0 {
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

// labelled are the pairs whose listed sandbox carries every label of the record.
func labelled(pairs []*pair, r Record) []*pair {
	var found []*pair
	for _, p := range pairs {
		if p.listed != nil && r.about(*p.listed) {
			found = append(found, p)
		}
	}
	return found
}

// about says that the sandbox carries every label that the record names it by.
func (r Record) about(s sandbox.Sandbox) bool {
	for key, value := range r.Labels {
		if s.Labels[key] != value {
			return false
		}
	}
	return len(r.Labels) > 0
}

// merge joins the pairs that their reads show to be one sandbox: a record may call
// it otherwise than the listing, or than another record.
func merge(pairs []*pair) []*pair {
	byID := map[string]*pair{}
	for _, p := range pairs {
		if p.listed != nil {
			byID[p.key] = p
		}
	}
	return slices.DeleteFunc(pairs, func(p *pair) bool {
		id := p.look.box.ID
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

// alone says of each name whether one sandbox has it, so that a record which goes
// by the name can mean no other.
func alone(pairs []*pair) map[string]bool {
	names := map[string]bool{}
	for _, p := range pairs {
		if box, ok := p.box(); ok {
			_, taken := names[box.Name]
			names[box.Name] = !taken && box.Name != ""
		}
	}
	return names
}
