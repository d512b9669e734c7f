package reconcile

import (
	"context"
	"iter"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// How is how a plan is carried out.
type How struct {
	Limits Limits
	Record *runs.Writer
	Wait   time.Duration // for an end to be seen; 0 = fleet.DefaultWait
	By     string        // the operator, for the provider's record
}

// Done is the result of one row of a plan.
type Done struct {
	sandbox.Ending

	Row     Row
	Journal error // why the journal has lost an entry by now; nil = it has lost none
}

// Fix carries out a plan. Each row that was found comes out once with its outcome; rows
// that are only reported are skipped. Records are marked first, then sandboxes adopted,
// then ended. The error is fault.KindRefused where a guard refuses; then nothing was
// called. The sequence can be read once, and rows after the end of ctx are not_attempted.
func (e *Engine) Fix(ctx context.Context, plan Plan, how How) (iter.Seq[Done], error) {
	if err := plan.Refusal(how.Limits); err != nil {
		return nil, err
	}
	if how.Record == nil {
		return nil, fault.New(fault.KindRefused, "sbx does nothing without a journal")
	}
	f := &fixRun{e: e, plan: plan, how: how}
	return func(yield func(Done) bool) {
		tell := func(d Done) bool {
			f.writeResult(&d)
			return yield(d)
		}
		adopt := func(r Row) Done { return f.adoptSandbox(ctx, r) }
		report := func(r Row) Done { return newDone(r, sandbox.OutcomeSkipped, r.Reason, r.Err) }
		_ = f.markRecords(ctx, tell) && f.yieldRows(ActAdopt, adopt, tell) && f.endSandboxes(ctx, yield) && f.yieldRows(ActReport, report, yield)
	}, nil
}

// fixRun is one plan that is carried out.
type fixRun struct {
	e    *Engine
	plan Plan
	how  How
}

func (f *fixRun) actingRows(a Action) []Row {
	var rows []Row
	for _, r := range f.plan.Rows {
		if r.Action == a {
			rows = append(rows, r)
		}
	}
	return rows
}

// yieldRows yields the result of do for every row with an action.
func (f *fixRun) yieldRows(a Action, do func(Row) Done, yield func(Done) bool) bool {
	for _, r := range f.actingRows(a) {
		if !yield(do(r)) {
			return false
		}
	}
	return true
}

func (f *fixRun) adoptSandbox(ctx context.Context, r Row) Done {
	began := time.Now()
	box, err := f.e.Fleet.Get(ctx, r.Ref)
	switch {
	case ctx.Err() != nil:
		return notAttemptedDone(ctx, r)
	case err != nil:
		return newDone(r, sandbox.OutcomeFailed, err.Error(), err)
	case box.State.Ended():
		return newDone(r, sandbox.OutcomeChanged, "it has ended since", nil)
	}
	if err := f.writeIntent(r); err != nil {
		return newDone(r, sandbox.OutcomeFailed, err.Error(), err)
	}
	if err := f.e.Sources[r.Ref.Provider].Adopt(ctx, box); err != nil {
		return newDone(r, sandbox.OutcomeFailed, err.Error(), err)
	}
	d := newDone(r, sandbox.OutcomeVerified, "recorded", nil)
	d.Duration = time.Since(began)
	return d
}

// endSandboxes ends sandboxes through the fleet, which reads each again, requests its end
// once and polls until the end is seen.
func (f *fixRun) endSandboxes(ctx context.Context, yield func(Done) bool) bool {
	rows := map[sandbox.Ref]Row{}
	var targets []sandbox.Sandbox
	for _, r := range f.actingRows(ActTerminate) {
		rows[r.Ref] = r
		targets = append(targets, r.Box)
	}
	how := safety.Options{
		Verb: safety.VerbReconcile, Protected: f.e.Rules.Protected, Record: f.how.Record,
		Describe: func(i *runs.Intent) { describe(i, rows[i.Ref]) },
		How: fleet.EndOptions{
			Delete: f.e.Rules.Delete, Wait: f.how.Wait, By: f.how.By,
			Recheck: fleet.Recheck{Judge: func(now sandbox.Sandbox) (sandbox.Outcome, string) { return f.recheckOrphan(rows[now.Ref()], now) }},
		},
	}
	for ending := range safety.End(ctx, f.e.Fleet, targets, how) {
		if !yield(Done{Ending: ending, Row: rows[ending.Ref], Journal: f.lost(ending.Ref)}) {
			return false
		}
	}
	return true
}

// recheckOrphan applies every rule again to the read just before the end.
func (f *fixRun) recheckOrphan(r Row, now sandbox.Sandbox) (sandbox.Outcome, string) {
	if r.Action != ActTerminate {
		return sandbox.OutcomeChanged, "it has changed since the plan"
	}
	if now.State == sandbox.StateRunning && r.Box.State != sandbox.StateRunning { // nobody has looked whether it works
		return sandbox.OutcomeChanged, "it was " + string(r.Box.State) + " when it was planned, and runs now"
	}
	at := f.e.Now()
	before, _ := startTime(r.Box, at)
	if from, _ := startTime(now, at); !from.Equal(before) {
		return sandbox.OutcomeChanged, "it was started again since the plan"
	}
	now = now.WithActivity(r.Box.LastActivityAt, r.Box.ActivityBasis)
	again := r
	again.Box, again.Reason = now, ""
	if again = f.e.judgeSuspect(again, f.e.Sources[r.Ref.Provider], at); again.Action != ActTerminate {
		return sandbox.OutcomeSkipped, again.Reason
	}
	return "", ""
}

func newDone(r Row, outcome sandbox.Outcome, reason string, err error) Done {
	return Done{
		Row:    r,
		Ending: sandbox.Ending{Ref: r.Ref, Outcome: outcome, Reason: reason, Err: err, Evidence: append(append([]sandbox.Evidence{}, r.Record...), r.Reality...)},
	}
}

func notAttemptedDone(ctx context.Context, r Row) Done {
	return newDone(r, sandbox.OutcomeNotAttempted, "not requested: "+context.Cause(ctx).Error(), fault.Placed(ctx.Err(), r.Ref.Provider, "reconcile "+r.Ref.ID))
}

// markRecords ends the records of ended sandboxes, profile by profile. Marks that a control
// plane only accepts are proved by reading its records again.
func (f *fixRun) markRecords(ctx context.Context, yield func(Done) bool) bool {
	for _, side := range f.plan.Sides {
		source := f.e.Sources[side.Profile]
		var all []Done
		for _, r := range f.actingRows(ActMark) {
			if r.Ref.Provider == side.Profile {
				all = append(all, f.markRecord(ctx, source, r))
			}
		}
		if source.Reread {
			f.recheckRecords(ctx, source, all)
		}
		for _, d := range all {
			if !yield(d) {
				return false
			}
		}
	}
	return true
}

// markRecord marks one record, unless its sandbox exists after all.
func (f *fixRun) markRecord(ctx context.Context, source Source, r Row) Done {
	began := time.Now()
	box, err := f.e.Fleet.Get(ctx, r.Ref)
	again := &pair{profile: r.Ref.Provider, key: r.Ref.ID, look: idRead{asked: true, sandbox: box, err: err}}
	f.e.discardUnprovedAbsences(ctx, []*pair{again})
	err = again.look.err
	gone := again.look.isGone()
	switch {
	case ctx.Err() != nil:
		return notAttemptedDone(ctx, r)
	case err != nil && !gone:
		return newDone(r, sandbox.OutcomeFailed, err.Error(), err)
	case !gone && !box.State.Ended():
		return newDone(r, sandbox.OutcomeChanged, "it is "+string(box.State)+" by now", nil)
	}
	if err := f.writeIntent(r); err != nil {
		return newDone(r, sandbox.OutcomeFailed, err.Error(), err)
	}
	if err := source.Mark(ctx, recordRef(r), string(r.Cause)+": "+r.Reason); err != nil {
		return newDone(r, sandbox.OutcomeFailed, err.Error(), err)
	}
	d := newDone(r, sandbox.OutcomeVerified, "the record was marked as ended", nil)
	d.Duration = time.Since(began)
	return d
}

func recordRef(r Row) sandbox.Ref {
	ref := r.Ref
	if len(r.Records) > 0 {
		ref.ID = r.Records[0].SandboxID
	}
	return ref
}

// recheckRecords reads the records again: a mark whose record still claims life was
// accepted, and is not verified.
func (f *fixRun) recheckRecords(ctx context.Context, source Source, all []Done) {
	verified := func(d Done) bool { return d.Outcome == sandbox.OutcomeVerified }
	if !slices.ContainsFunc(all, verified) {
		return
	}
	records, err := source.readAll(ctx)
	for i, d := range all {
		still := slices.ContainsFunc(records, func(r Record) bool {
			return r.SandboxID == recordRef(d.Row).ID && r.Live != sandbox.False
		})
		switch {
		case !verified(d):
		case err != nil:
			all[i].Outcome, all[i].Reason = sandbox.OutcomeAccepted, "accepted, but the records cannot be read again: "+err.Error()
			all[i].Err = fault.Placed(err, d.Ref.Provider, "records of "+source.Name)
		case still:
			all[i].Outcome, all[i].Reason = sandbox.OutcomeAccepted, "accepted, but the record still exists"
		default:
			gone := sandbox.Evidence{What: "record", Value: "ended or absent", Source: source.Name, At: f.e.Now()}
			all[i].Evidence = append(all[i].Evidence, gone)
		}
	}
}

// describe says in an intent what is done to a row, and why.
func describe(i *runs.Intent, r Row) {
	i.Action, i.Class, i.Cause, i.Reason = string(r.Action), string(r.Class), string(r.Cause), r.Reason
	i.Record, i.Reality = r.Record, r.Reality
}

// writeIntent makes the intent to change a record durable; after an error nothing may be called.
func (f *fixRun) writeIntent(r Row) error {
	i := runs.IntentOf(r.Box, false)
	i.Ref = r.Ref
	describe(&i, r)
	return fault.Placed(f.how.Record.Intent(i), r.Ref.Provider, "journal of "+r.Ref.ID+", so nothing was called")
}

// writeResult records what became of the change of a record. Where that fails, the caller still gets the
// result, beside the error.
func (f *fixRun) writeResult(d *Done) {
	_ = f.how.Record.Result(d.Ending) // lost tells it
	d.Journal = f.lost(d.Ref)
}

func (f *fixRun) lost(ref sandbox.Ref) error {
	return fault.Placed(f.how.Record.Failed(), ref.Provider, "journal of "+ref.ID)
}
