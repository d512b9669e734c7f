package reconcile

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Plan is the comparison of all profiles at one moment.
type Plan struct {
	At   time.Time
	Rows []Row // by profile in the order of the fleet, then by reference
	// Sides are the profiles that were compared. What is not here was left out.
	Sides []Side
	// Settled counts what is over on every side that knows of it; it has no row.
	Settled int
	Errors  []error // one for each profile that was left out, and for each read by id that failed
}

// Side is how much there was to compare of one profile.
type Side struct {
	Profile string
	Source  string
	AsOf    time.Time // of the records; zero = read as they are
	Fleet   int       // sandboxes that have not ended, by a complete listing
	Records int
	Claims  int           // records that do not take their sandbox for ended
	Skew    time.Duration // how far its clock is ahead; 0 where that is not known
}

// Counts gives the rows of each class.
func (p Plan) Counts() map[Class]int {
	n := map[Class]int{RecordOnly: 0, RealOnly: 0, Differs: 0, Both: 0}
	for _, r := range p.Rows {
		n[r.Class]++
	}
	return n
}

// Found counts the rows that want something of somebody.
func (p Plan) Found() int {
	n := 0
	for _, r := range p.Rows {
		if r.Found() {
			n++
		}
	}
	return n
}

// Acting gives the rows about which something would be done.
func (p Plan) Acting() []Row {
	return slices.DeleteFunc(slices.Clone(p.Rows), func(r Row) bool { return !r.Action.Acts() })
}

// Plan compares every profile of the fleet with its records. A profile of which
// either side could not be read whole is left out, with its error. Nothing is
// written but, with Rules.Observe, what was observed.
func (e *Engine) Plan(ctx context.Context) Plan {
	names := e.Fleet.Names()
	sides := make([]side, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { sides[i] = e.gather(ctx, name) })
	}
	all.Wait()
	plan := Plan{At: e.Now()}
	for _, s := range sides {
		if s.err == nil {
			s.err = fault.Placed(ctx.Err(), s.profile, "reconcile")
		}
		if s.err != nil {
			plan.Errors = append(plan.Errors, s.err)
			continue
		}
		e.add(ctx, &plan, s)
	}
	return plan
}

// add judges one profile.
func (e *Engine) add(ctx context.Context, plan *Plan, s side) {
	skew, _ := e.Fleet.Skew(s.profile)
	plan.Sides = append(plan.Sides, Side{Profile: s.profile, Source: s.source.Name, AsOf: s.source.AsOf, Fleet: s.fleet, Records: s.records, Claims: s.claims, Skew: skew})
	var rows []Row
	for _, p := range s.pairs {
		row, compared := e.judge(p, s.source, plan.At)
		if !compared {
			plan.Settled++
			continue
		}
		rows = append(rows, row)
	}
	e.excuse(ctx, rows)
	if err := e.observe(ctx, s.profile, rows); err != nil {
		plan.Errors = append(plan.Errors, err)
	}
	for _, row := range rows {
		if row.Err != nil {
			plan.Errors = append(plan.Errors, row.Err)
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.Ref.ID, b.Ref.ID) })
	plan.Rows = append(plan.Rows, rows...)
}

// excuse looks at all suspects at once: the fleet bounds how many are in flight.
func (e *Engine) excuse(ctx context.Context, rows []Row) {
	var all sync.WaitGroup
	for i, row := range rows {
		all.Go(func() { rows[i] = e.excused(ctx, row) })
	}
	all.Wait()
}

// excused looks at what would be ended for what its records say, as a cleanup does: a
// sandbox that is at work stays, whatever is written down of it. A source that cannot
// tell vetoes nothing; one that fails to tell does.
func (e *Engine) excused(ctx context.Context, row Row) Row {
	if row.Action != ActTerminate || row.Box.State != sandbox.StateRunning {
		return row
	}
	seen := e.Fleet.ObserveLife(ctx, row.Box)
	row.Box, row.seen = seen.Sandbox, &seen
	if err := seen.SourceErr(); err != nil {
		row.Err = err
		return row.kept(ActReport, "whether it works could not be asked")
	}
	if why := e.alive(row); why != "" {
		return row.kept(ActReport, why)
	}
	if err := seen.LookErr(); err != nil && e.Diagnose(row).Activity == sandbox.Unknown {
		row.Err = err
		return row.kept(ActReport, "whether it works could not be looked at")
	}
	return row
}

// of says that a key of the sightings belongs to a profile.
func of(key, profile string) bool { return strings.HasPrefix(key, profile+"/") }
