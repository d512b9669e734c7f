package reconcile

import (
	"context"
	"slices"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// side is what was read of one profile.
type side struct {
	profile string
	source  Source
	pairs   []*pair
	fleet   int // sandboxes of the complete listing that have not ended
	records int // records that were read
	claims  int // of them, those that do not take their sandbox for ended
	err     error
}

// gather reads both sides of a profile. An error says that one of them could not
// be read whole, or may not be believed; then nothing is concluded from either.
func (e *Engine) gather(ctx context.Context, profile string) side {
	s := side{profile: profile, source: e.Sources[profile]}
	if s.source.Read == nil {
		s.err = fault.New(fault.KindUnsupported, "nothing has records of its sandboxes").At(profile, "reconcile").
			WithHint("name a source with --records")
		return s
	}
	listing, err := e.listing(ctx, profile)
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
	records, err := s.source.collect(ctx)
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
	if s.err = e.believable(s); s.err != nil {
		return s
	}
	s.pairs = e.compare(ctx, s, records, listing)
	return s
}

// believable refuses an empty list of records beside sandboxes that are there: by
// it, each of them would be an orphan. Only to adopt them it may be empty.
func (e *Engine) believable(s side) error {
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

// listing reads a profile's listing to its end, ended ones included. An incomplete
// one is an error and nothing else.
func (e *Engine) listing(ctx context.Context, profile string) ([]sandbox.Sandbox, error) {
	one, err := e.Fleet.Narrow([]string{profile})
	if err != nil {
		return nil, err
	}
	l := one.Collect(ctx, providers.Query{All: true})
	return l.Items, l.Err()
}

// compare joins the two sides and reads by id whatever the join alone does not
// decide. Records are then read a second time where a sandbox is on none of them,
// or on one that says it has ended: they may be younger than the first reading.
func (e *Engine) compare(ctx context.Context, s side, records []Record, listing []sandbox.Sandbox) []*pair {
	pairs := join(s.profile, records, listing)
	e.lookAll(ctx, s, pairs)
	pairs = merge(pairs)
	if s.source.AsOf.IsZero() && e.suspects(pairs) {
		e.reread(ctx, s, pairs)
	}
	return pairs
}

// lookAll reads by id, all at once: the fleet bounds how many are in flight.
func (e *Engine) lookAll(ctx context.Context, s side, pairs []*pair) {
	var all sync.WaitGroup
	for _, p := range pairs {
		if !p.askable(s.source.Confirm) {
			continue
		}
		all.Go(func() {
			at := e.Now()
			box, err := e.Fleet.Resolve(ctx, p.ref()) // a record may call it by its name
			p.look = look{asked: true, box: box, err: err, at: at}
		})
	}
	all.Wait()
	e.doubt(ctx, pairs)
}

// doubt turns the absence of a sandbox into a failed read where the last request to
// end it was not acknowledged: then it proves nothing.
func (e *Engine) doubt(ctx context.Context, pairs []*pair) {
	if !slices.ContainsFunc(pairs, func(p *pair) bool { return p.look.gone() }) {
		return
	}
	open, unread := e.Fleet.Unconfirmed(ctx)
	for _, p := range pairs {
		request, kept := open[p.ref()]
		switch {
		case !p.look.gone():
		case unread != nil:
			p.look.err = fault.New(fault.KindUnverified, "it is not there, and whether a request to end it was refused cannot be read: %w", unread).At(p.profile, "get "+p.key)
		case kept && request.Unconfirmed():
			p.look.err = fault.New(fault.KindUnverified, "it is not there, and the request to end it was not acknowledged (%s)", request.Detail).At(p.profile, "get "+p.key)
		}
	}
}

// suspects says that some sandbox might be ended for what its records say.
func (e *Engine) suspects(pairs []*pair) bool {
	for _, p := range pairs {
		if box, ok := p.box(); ok && e.endable(box.State) && !p.claims() {
			return true
		}
	}
	return false
}

// reread is the read by id on the side of the records. Control planes have no read
// for one record, so all are read again; where that fails, nothing is proved.
func (e *Engine) reread(ctx context.Context, s side, pairs []*pair) {
	again, err := s.source.collect(ctx)
	byWord := map[string][]Record{}
	for _, r := range again {
		byWord[r.SandboxID] = append(byWord[r.SandboxID], r)
	}
	unique := alone(pairs)
	for _, p := range pairs {
		box, ok := p.box()
		switch {
		case !ok || p.claims() || !e.endable(box.State):
		case err != nil:
			p.look.err = fault.Placed(err, s.profile, "records of "+s.source.Name)
		default:
			p.records = calling(byWord, p.words(box, unique))
			for _, r := range again {
				if r.about(box) && !slices.ContainsFunc(p.records, func(o Record) bool { return o.SandboxID == r.SandboxID && o.TaskID == r.TaskID }) {
					p.records = append(p.records, r)
				}
			}
		}
	}
}

// words are what a record may call the sandbox.
func (p *pair) words(box sandbox.Sandbox, unique map[string]bool) []string {
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

func calling(byWord map[string][]Record, words []string) []Record {
	var found []Record
	for _, word := range words {
		found = append(found, byWord[word]...)
	}
	return found
}
