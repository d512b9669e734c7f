package reconcile

import (
	"context"
	"iter"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// How says how a plan is carried out.
type How struct {
	Limits  Limits
	Journal Journal
	Wait    time.Duration // for an end to be seen; 0 = fleet.DefaultWait
	By      string        // who asks, for the provider's record
	// Redact takes secrets out of what is written down. Nil = nothing is secret.
	Redact func(string) string
}

// Done is what became of one row of a plan.
type Done struct {
	sandbox.Ending

	Row     Row
	Journal error // what became of it could not be written down
}

// Fix carries out a plan. Each row that is found comes out once with its outcome;
// what is only reported is skipped. Records are marked first, then sandboxes
// adopted, then ended. The error is fault.KindRefused where a guard says no; then
// nothing was called. The sequence can be read once, and an end of ctx leaves the
// rest not_attempted.
func (e *Engine) Fix(ctx context.Context, plan Plan, how How) (iter.Seq[Done], error) {
	if err := plan.Refusal(how.Limits); err != nil {
		return nil, err
	}
	if how.Journal == nil {
		return nil, fault.New(fault.KindRefused, "nothing is done without a journal")
	}
	f := &fixing{e: e, plan: plan, how: how, scribe: &scribe{journal: how.Journal, delete: e.Rules.Delete, redact: how.Redact}}
	return func(yield func(Done) bool) {
		tell := func(d Done) bool {
			f.scribe.result(&d)
			return yield(d)
		}
		for _, part := range []func(context.Context, func(Done) bool) bool{f.mark, f.adopt, f.end, f.report} {
			if !part(ctx, tell) {
				return
			}
		}
	}, nil
}

// fixing is one plan on its way.
type fixing struct {
	e      *Engine
	plan   Plan
	how    How
	scribe *scribe
}

func (f *fixing) rows(a Action) []Row {
	var rows []Row
	for _, r := range f.plan.Rows {
		if r.Action == a {
			rows = append(rows, r)
		}
	}
	return rows
}

// report gives what nobody acts on.
func (f *fixing) report(_ context.Context, yield func(Done) bool) bool {
	for _, r := range f.rows(ActReport) {
		d := done(r, sandbox.OutcomeSkipped, r.Reason, r.Err)
		if !yield(d) {
			return false
		}
	}
	return true
}

// adopt puts sandboxes on record that are still there.
func (f *fixing) adopt(ctx context.Context, yield func(Done) bool) bool {
	for _, r := range f.rows(ActAdopt) {
		if !yield(f.adoptOne(ctx, r)) {
			return false
		}
	}
	return true
}

func (f *fixing) adoptOne(ctx context.Context, r Row) Done {
	began := time.Now()
	box, err := f.e.Fleet.Get(ctx, r.Ref)
	switch {
	case ctx.Err() != nil:
		return notAttempted(ctx, r)
	case err != nil:
		return done(r, sandbox.OutcomeFailed, err.Error(), err)
	case box.State.Ended():
		return done(r, sandbox.OutcomeChanged, "it has ended meanwhile", nil)
	}
	if err := f.scribe.intend(r); err != nil {
		return done(r, sandbox.OutcomeFailed, err.Error(), err)
	}
	if err := f.e.Sources[r.Ref.Provider].Adopt(ctx, box); err != nil {
		return done(r, sandbox.OutcomeFailed, err.Error(), err)
	}
	d := done(r, sandbox.OutcomeVerified, "put on record", nil)
	d.Duration = time.Since(began)
	return d
}

// end ends sandboxes through the fleet, which reads each once more, asks once and
// looks until the end is seen.
func (f *fixing) end(ctx context.Context, yield func(Done) bool) bool {
	rows := map[sandbox.Ref]Row{}
	var targets []sandbox.Sandbox
	for _, r := range f.rows(ActTerminate) {
		rows[r.Ref] = r
		targets = append(targets, r.Box)
	}
	how := fleet.EndOptions{
		Delete: f.e.Rules.Delete, Wait: f.how.Wait, By: f.how.By, Origin: fleet.EndOrigin{Journaled: true},
		Recheck: fleet.Recheck{Judge: func(now sandbox.Sandbox) (sandbox.Outcome, string) { return f.recheckOrphan(rows[now.Ref()], now) }},
		Record:  fleet.EndRecord{BeforeRequest: func(_ context.Context, s sandbox.Sandbox) error { return f.scribe.intend(rows[s.Ref()]) }},
	}
	for ending := range safety.End(ctx, f.e.Fleet, targets, safety.Options{Verb: safety.VerbReconcile, How: how, Protected: f.e.Rules.Protected}) {
		if !yield(Done{Ending: ending, Row: rows[ending.Ref]}) {
			return false
		}
	}
	return true
}

// recheckOrphan applies every rule again to what was read just before the end.
func (f *fixing) recheckOrphan(r Row, now sandbox.Sandbox) (sandbox.Outcome, string) {
	if r.Action != ActTerminate {
		return sandbox.OutcomeChanged, "it is not what was planned"
	}
	at := f.e.Now()
	before, _ := born(r.Box, at)
	if from, _ := born(now, at); !from.Equal(before) {
		return sandbox.OutcomeChanged, "it was started anew since the plan"
	}
	now = now.WithActivity(r.Box.LastActivityAt, r.Box.ActivityBasis)
	again := r
	again.Box, again.Reason = now, ""
	if again = f.e.suspect(again, f.e.Sources[r.Ref.Provider], at); again.Action != ActTerminate {
		return sandbox.OutcomeSkipped, again.Reason
	}
	return "", ""
}

func done(r Row, outcome sandbox.Outcome, reason string, err error) Done {
	return Done{Row: r, Ending: sandbox.Ending{Ref: r.Ref, Outcome: outcome, Reason: reason, Err: err, Evidence: append(append([]sandbox.Evidence{}, r.Record...), r.Reality...)}}
}

func notAttempted(ctx context.Context, r Row) Done {
	return done(r, sandbox.OutcomeNotAttempted, "not asked: "+context.Cause(ctx).Error(), fault.Placed(ctx.Err(), r.Ref.Provider, "reconcile "+r.Ref.ID))
}
