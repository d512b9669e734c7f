// Package reconcile compares the records of control planes with the sandboxes that
// providers run, in both directions: records without a sandbox, sandboxes without a record,
// and pairs that disagree.
//
// A plan is made first and changes nothing; Fix carries out what the plan allows, and in
// doubt every rule leaves a sandbox alone. All input is handed in: the fleet, the records,
// the clock, earlier observations, the journal, protection, ownership and limits. Flags,
// output, wire formats and SQL do not belong here.
package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/safety"
	"sbx/internal/store"
	"sbx/internal/triage"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Plan is the comparison of all profiles at one moment.
type Plan struct {
	At   time.Time
	Rows []Row // by profile in the order of the fleet, then by reference
	// Sides are the profiles that were compared. The others were left out.
	Sides []Side
	// Settled counts the sandboxes that are over on every side; they have no row.
	Settled int
	Errors  []error // one for each profile that was left out, and for each read by id that failed
}

// Side is how much of one profile was compared.
type Side struct {
	Profile string
	Source  string
	AsOf    time.Time // of the records; zero = read live
	Fleet   int       // sandboxes of a complete listing that have not ended
	Records int
	Claims  int           // records that do not say that their sandbox has ended
	Skew    time.Duration // how far its clock is ahead; 0 = not known
}

// Counts counts the rows of each class.
func (p Plan) Counts() map[Class]int {
	n := map[Class]int{RecordOnly: 0, RealOnly: 0, Differs: 0, Both: 0}
	for _, r := range p.Rows {
		n[r.Class]++
	}
	return n
}

// CountNeedingAction counts the rows that need an action of sbx or of people.
func (p Plan) CountNeedingAction() int {
	n := 0
	for _, r := range p.Rows {
		if r.NeedsAction() {
			n++
		}
	}
	return n
}

// Acting lists the rows that sbx would act on.
func (p Plan) Acting() []Row {
	return slices.DeleteFunc(slices.Clone(p.Rows), func(r Row) bool { return !r.Action.Acts() })
}

// Plan compares every profile of the fleet with its records. A profile whose sides were not
// both read completely is left out, with its error. Nothing is written except, with
// Rules.Observe, the observations.
func (e *Engine) Plan(ctx context.Context) Plan {
	names := e.Fleet.Names()
	sides := make([]sideData, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { sides[i] = e.gatherSide(ctx, name) })
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
		e.addSide(ctx, &plan, s)
	}
	return plan
}

func (e *Engine) addSide(ctx context.Context, plan *Plan, s sideData) {
	skew, _ := e.Fleet.Skew(s.profile)
	plan.Sides = append(
		plan.Sides, Side{Profile: s.profile, Source: s.source.Name, AsOf: s.source.AsOf, Fleet: s.fleet, Records: s.records, Claims: s.claims, Skew: skew},
	)
	var rows []Row
	for _, p := range s.pairs {
		row, compared := e.judgePair(p, s.source, plan.At)
		if !compared {
			plan.Settled++
			continue
		}
		rows = append(rows, row)
	}
	var observed sync.WaitGroup
	for i, row := range rows { // the fleet bounds the requests in flight
		observed.Go(func() { rows[i] = e.observeSuspect(ctx, row) })
	}
	observed.Wait()
	if err := e.applyObservations(ctx, s.profile, rows); err != nil {
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

// observeSuspect observes a sandbox that would be ended because of its records, as a
// cleanup does: one that works stays, whatever its records say. A source without the
// ability vetoes nothing; a source that fails blocks the end.
func (e *Engine) observeSuspect(ctx context.Context, row Row) Row {
	if row.Action != ActTerminate || row.Box.State != sandbox.StateRunning {
		return row
	}
	seen := e.Fleet.ObserveLife(ctx, row.Box)
	row.Box, row.observation = seen.Sandbox, &seen
	if err := seen.SourceErr(); err != nil {
		row.Err = err
		return row.leftAlone(ActReport, "sbx could not ask whether it is active")
	}
	if why := e.lifeSign(row); why != "" {
		return row.leftAlone(ActReport, why)
	}
	if err := seen.LookErr(); err != nil && e.Diagnose(row).Activity == sandbox.Unknown {
		row.Err = err
		return row.leftAlone(ActReport, "sbx could not check whether it is active")
	}
	return row
}

// Defaults and minima of the proof of an orphan.
const (
	// MinObservations is the fewest observations that may prove anything.
	MinObservations     = 2
	DefaultObservations = 2
	DefaultGrace        = 5 * time.Minute  // between two observations that count
	DefaultCreateGrace  = 10 * time.Minute // from a sandbox's start until its record is written
	DefaultRecordsAge   = time.Hour        // a dump of older records is not acted on
)

// Rules are the rules of a plan. The functions are called concurrently.
type Rules struct {
	Observations int           // observations that prove an orphan or a leak; at least MinObservations
	Grace        time.Duration // between two observations
	CreateGrace  time.Duration // a younger sandbox may not be recorded yet, and the sandbox of a younger record may not exist yet
	RecordsAge   time.Duration // the oldest dump that may be acted on
	// Observe counts this comparison as an observation. Without it nothing is written.
	Observe bool
	// Adopt records orphans instead of ending them.
	Adopt bool
	// Delete also destroys what the provider would keep.
	Delete bool

	Protected  func(sandbox.Sandbox) string // why it may not be ended; "" = it may
	Owned      func(profile string, labels map[string]string) bool
	Thresholds func(sandbox.Sandbox) triage.Thresholds
}

// DefaultRules are the rules of a comparison where nothing else is asked for.
func DefaultRules() Rules {
	return Rules{Observations: DefaultObservations, Grace: DefaultGrace, CreateGrace: DefaultCreateGrace, RecordsAge: DefaultRecordsAge}
}

// Engine compares records with reality. Its fields are set once.
type Engine struct {
	Fleet      *fleet.Fleet
	Now        func() time.Time
	Rules      Rules
	SeenCounts store.SeenCountStore
	Sources    map[string]Source // by profile
}

// New makes an engine. Rules by which one observation would be a proof, and rules without
// protection or ownership, are fault.KindUsage.
func New(e Engine) (*Engine, error) {
	r := e.Rules
	switch {
	case r.Observations < MinObservations:
		return nil, fault.Usage("%d observations are not enough", r.Observations).WithHint("at least %d are needed, with --grace between them", MinObservations)
	case r.Grace <= 0 || r.CreateGrace <= 0 || r.RecordsAge <= 0:
		return nil, fault.Usage("every grace period must be longer than 0")
	case e.Fleet == nil || e.Now == nil || e.SeenCounts == nil || r.Protected == nil || r.Owned == nil || r.Thresholds == nil:
		return nil, fault.Usage("the rules of reconcile are incomplete")
	}
	return &e, nil
}

// Limits bound one fix.
type Limits struct {
	safety.Limits

	RecordsAge time.Duration // the oldest dump that may be acted on
}

// Guards checks a plan against the limits. Marks count like endings: otherwise a provider
// that denies every sandbox would end every record, and the next run would take every
// sandbox for an orphan.
func (p Plan) Guards(l Limits) []safety.Guard {
	guards := []safety.Guard{
		l.MaxDeleteGuard(p.countRows("", ActTerminate), safety.Ending()), l.MaxDeleteGuard(p.countRows("", ActMark), safety.Marking()),
	}
	for _, s := range p.Sides {
		ends, marks := p.countRows(s.Profile, ActTerminate), p.countRows(s.Profile, ActMark)
		guards = append(guards, l.FractionGuard(s.Profile, ends, s.Fleet, safety.Ending()), l.FractionGuard(s.Profile, marks, s.Claims, safety.Marking()))
		if l.IsProduction(s.Profile) {
			guards = append(guards, l.ProductionGuard(s.Profile, ends+marks, safety.Acting()))
		}
		if s.Skew != 0 && ends+marks > 0 {
			guards = append(guards, safety.ClockGuard(s.Profile, s.Skew))
		}
		if !s.AsOf.IsZero() {
			guards = append(guards, recordsAgeGuard(s, p.At.Sub(s.AsOf), ends+marks > 0, l.RecordsAge))
		}
	}
	return guards
}

// recordsAgeGuard bounds the age of a dump that is acted on; a dump from the future proves
// nothing.
func recordsAgeGuard(s Side, age time.Duration, acts bool, limit time.Duration) safety.Guard {
	return safety.Guard{
		Name: "records_age " + s.Profile, Limit: float64(int(limit.Seconds())), Value: float64(int(age.Seconds())), OK: !acts || age >= 0 && age <= limit,
		Objection: fmt.Sprintf("records_age: the records of %s are %d seconds old, and the limit is %d", s.Profile, int(age.Seconds()), int(limit.Seconds())),
		Advice:    "make a new dump: these records may have changed",
	}
}

// countRows counts the rows of a profile with an action; "" = all profiles.
func (p Plan) countRows(profile string, a Action) int {
	n := 0
	for _, r := range p.Rows {
		if r.Action == a && (profile == "" || r.Ref.Provider == profile) {
			n++
		}
	}
	return n
}

// Refusal is fault.KindRefused where a guard refuses, else nil. Line is the command line that was
// typed, if it is known.
func (p Plan) Refusal(l Limits, line ...string) error {
	return safety.Refusal(p.Guards(l), "see the plan first (without --fix): so many differences usually have one cause", line...)
}
