package reconcile

import (
	"context"
	"slices"
	"sync"

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
		s.err = fault.New(fault.KindUnsupported, "nothing has records of its sandboxes").At(profile, "reconcile").
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
		or = "put them on record: `sbx reconcile --provider " + s.profile + " --adopt --fix` (without --fix it shows the plan)"
	}
	return fault.New(fault.KindRefused, "the records of %s are empty, and %d sandboxes are there", s.source.Name, s.fleet).At(s.profile, "reconcile").
		WithHint("an empty list is no proof that all of them are orphans: look at the source, or %s", or)
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
	if s.source.AsOf.IsZero() && e.hasSuspects(pairs) {
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
			p.look.err = fault.New(fault.KindUnverified, "it is not there, and whether a request to end it was refused cannot be read: %w", unread).At(p.profile, "get "+p.key)
		case kept && request.Unconfirmed():
			p.look.err = fault.New(fault.KindUnverified, "it is not there, and the request to end it was not acknowledged (%s)", request.Detail).At(p.profile, "get "+p.key)
		}
	}
}

// hasSuspects reports whether any sandbox might be ended because of its records.
func (e *Engine) hasSuspects(pairs []*pair) bool {
	for _, p := range pairs {
		if box, ok := p.bestRead(); ok && e.canEnd(box.State) && !p.claimsLife() {
			return true
		}
	}
	return false
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
			p.records = recordsNaming(byWord, p.recordNames(box, unique))
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

func recordsNaming(byWord map[string][]Record, words []string) []Record {
	var found []Record
	for _, word := range words {
		found = append(found, byWord[word]...)
	}
	return found
}
