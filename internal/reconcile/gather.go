package reconcile

import (
	"context"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// sideData is what was read of one profile.
type sideData struct {
	profile string
	source  Source
	pairs   []*pair
	fleet   int // sandboxes of the complete listing that have not ended
	records int // records that were read
	claims  int // records that do not say that their sandbox has ended
	err     error
}

// gatherSide reads both sides of a profile. An error means that one of them is incomplete
// or implausible; then nothing is concluded from either.
func (e *Engine) gatherSide(ctx context.Context, profile string) sideData {
	s := sideData{profile: profile, source: e.Sources[profile]}
	if s.source.Read == nil {
		s.err = fault.New(fault.KindUnsupported, "no source has records of its sandboxes").At(profile, "reconcile").
			WithHint("name a source with --records")
		return s
	}
	listing, err := e.readListing(ctx, profile)
	if err != nil {
		s.err = err
		return s
	}
	s.fleet = len(listing)
	for _, box := range listing {
		if box.State.Ended() {
			s.fleet--
		}
	}
	records, err := s.source.readAll(ctx)
	if err != nil {
		s.err = fault.Placed(err, profile, "records of "+s.source.Name)
		return s
	}
	s.records = len(records)
	for _, r := range records {
		if r.Live != sandbox.False {
			s.claims++
		}
	}
	if s.err = e.checkPlausible(s); s.err != nil {
		return s
	}
	s.pairs = e.compareSides(ctx, s, records, listing)
	return s
}

// checkPlausible refuses an empty list of records where sandboxes exist: each of them would
// be an orphan. It is allowed where orphans are only adopted.
func (e *Engine) checkPlausible(s sideData) error {
	if s.records > 0 || s.fleet == 0 || e.Rules.Adopt {
		return nil
	}
	or := "name another with --records"
	if s.source.Adopt != nil {
		or = "record them: `sbx reconcile --provider " + s.profile + " --adopt --fix` (without --fix it shows the plan)"
	}
	return fault.New(fault.KindRefused, "the records of %s are empty, but %d sandboxes exist", s.source.Name, s.fleet).At(s.profile, "reconcile").
		WithHint("empty records do not prove that all of them are orphans: check the source, or %s", or)
}

// readListing reads a profile's listing to its end, including ended sandboxes. An
// incomplete listing is an error.
func (e *Engine) readListing(ctx context.Context, profile string) ([]sandbox.Sandbox, error) {
	one, err := e.Fleet.Narrow([]string{profile})
	if err != nil {
		return nil, err
	}
	l := one.Collect(ctx, providers.Query{All: true})
	return l.Items, l.Err()
}

// compareSides joins the two sides, and reads by id what the join does not decide. Where a
// sandbox has no record, or one that says that it has ended, the records are read again,
// because such a record may be newer than the first reading.
func (e *Engine) compareSides(ctx context.Context, s sideData, records []Record, listing []sandbox.Sandbox) []*pair {
	pairs := joinPairs(s.profile, records, listing)
	e.readByID(ctx, s, pairs)
	pairs = mergePairs(pairs)
	suspects := slices.ContainsFunc(pairs, func(p *pair) bool { // they might be ended because of their records
		box, ok := p.bestRead()
		return ok && e.canEnd(box.State) && !p.claimsLife()
	})
	if s.source.AsOf.IsZero() && suspects {
		e.rereadRecords(ctx, s, pairs)
	}
	return pairs
}

// readByID reads by id, concurrently: the fleet bounds the requests in flight.
func (e *Engine) readByID(ctx context.Context, s sideData, pairs []*pair) {
	var all sync.WaitGroup
	for _, p := range pairs {
		if !p.needsRead(s.source.Confirm) {
			continue
		}
		all.Go(func() {
			at := e.Now()
			box, err := e.Fleet.Resolve(ctx, p.sandboxRef()) // a record may hold the name instead of the id
			p.look = idRead{asked: true, sandbox: box, err: err, askedAt: at}
		})
	}
	all.Wait()
	e.discardUnprovedAbsences(ctx, pairs)
}

// discardUnprovedAbsences turns the absence of a sandbox into a failed read where the last
// request to end it was not acknowledged: then the absence proves nothing.
func (e *Engine) discardUnprovedAbsences(ctx context.Context, pairs []*pair) {
	if !slices.ContainsFunc(pairs, func(p *pair) bool { return p.look.isGone() }) {
		return
	}
	open, unread := e.Fleet.Unconfirmed(ctx)
	for _, p := range pairs {
		request, kept := open[p.sandboxRef()]
		switch {
		case !p.look.isGone():
		case unread != nil:
			p.look.err = fault.New(
				fault.KindUnverified, "it does not exist, but the record of a request to end it cannot be read: %w", unread,
			).At(p.profile, "get "+p.key)
		case kept && request.Unconfirmed():
			p.look.err = fault.New(
				fault.KindUnverified, "it does not exist, but the request to end it was not acknowledged (%s)", request.Detail,
			).At(p.profile, "get "+p.key)
		}
	}
}

// rereadRecords reads all records of the profile again, because control planes cannot read
// a single record. Where that fails, nothing is proved.
func (e *Engine) rereadRecords(ctx context.Context, s sideData, pairs []*pair) {
	again, err := s.source.readAll(ctx)
	byWord := map[string][]Record{}
	for _, r := range again {
		byWord[r.SandboxID] = append(byWord[r.SandboxID], r)
	}
	unique := uniqueNames(pairs)
	for _, p := range pairs {
		box, ok := p.bestRead()
		switch {
		case !ok || p.claimsLife() || !e.canEnd(box.State):
		case err != nil:
			p.look.err = fault.Placed(err, s.profile, "records of "+s.source.Name)
		default:
			p.records = nil
			for _, name := range p.recordNames(box, unique) {
				p.records = append(p.records, byWord[name]...)
			}
			for _, r := range again {
				if r.labelsMatch(box) && !slices.ContainsFunc(p.records, func(o Record) bool { return o.SandboxID == r.SandboxID && o.TaskID == r.TaskID }) {
					p.records = append(p.records, r)
				}
			}
		}
	}
}

// recordNames are the names by which a record may mean the sandbox.
func (p *pair) recordNames(box sandbox.Sandbox, unique map[string]bool) []string {
	words := []string{p.key, box.ID}
	if unique[box.Name] {
		words = append(words, box.Name)
	}
	for _, r := range p.records {
		words = append(words, r.SandboxID)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

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
