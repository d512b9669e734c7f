package reconcile

import (
	"context"
	"iter"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
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
		Delete: f.e.Rules.Delete, Wait: f.how.Wait, By: f.how.By, Precheck: true, Legible: true, Origin: fleet.EndOrigin{Journaled: true},
		Still: func(now sandbox.Sandbox) (sandbox.Outcome, string) { return f.still(rows[now.Ref()], now) },
	}
	for ending := range f.e.Fleet.Terminate(ctx, targets, how) {
		if ending.Outcome == sandbox.OutcomeFailed && ending.Err == nil {
			ending.Err = fault.New(fault.KindUnknown, "%s", ending.Reason).At(ending.Ref.Provider, "terminate "+ending.Ref.ID)
		}
		if !yield(Done{Ending: ending, Row: rows[ending.Ref]}) {
			return false
		}
	}
	return true
}

// still applies every rule again to what was read just before the end, and then
// makes the intent durable: it is the last thing before the request.
func (f *fixing) still(r Row, now sandbox.Sandbox) (sandbox.Outcome, string) {
	if r.Action != ActTerminate {
		return sandbox.OutcomeChanged, "it is not what was planned"
	}
	if skew, _ := f.e.Fleet.Skew(r.Ref.Provider); skew.Abs() > maxSkew {
		return sandbox.OutcomeNotAttempted, "not asked: the clocks are " + sandbox.FormatDuration(skew.Abs()) + " apart, so that no age can be trusted"
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
	if err := f.scribe.intend(r); err != nil {
		return sandbox.OutcomeFailed, err.Error()
	}
	return "", ""
}

func done(r Row, outcome sandbox.Outcome, reason string, err error) Done {
	return Done{Row: r, Ending: sandbox.Ending{Ref: r.Ref, Outcome: outcome, Reason: reason, Err: err, Evidence: append(append([]sandbox.Evidence{}, r.Record...), r.Reality...)}}
}

func notAttempted(ctx context.Context, r Row) Done {
	return done(r, sandbox.OutcomeNotAttempted, "not asked: "+context.Cause(ctx).Error(), fault.Placed(ctx.Err(), r.Ref.Provider, "reconcile "+r.Ref.ID))
}

// maxSkew is how far a provider's clock may be off before ages mean nothing (facts of
// hygiene, feature 3).
const maxSkew = 2 * time.Minute
