package end

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/recall"
	"sbx/internal/reconcile"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// Reconcile compares what is on record with what the providers really run; with Fix it acts
// on the plan, each end verified. A plain plan writes nothing and needs no lock. Items of
// Fix are of types ReconcilePlanned, error (a line that is not in the journal) and
// reconcile.Done. Beside an error nothing was compared.
func Reconcile(ctx context.Context, env *ops.Env, req ReconcileRequest, watch ops.Observer) (result *ReconcileResult, err error) {
	if err := env.MayChange(); req.Fix && err != nil {
		return nil, err
	}
	r := &reconcileRun{env: env, req: req, watch: watch, id: env.RunID()}
	if req.Fix && !req.Yes {
		return nil, fault.New(
			fault.KindRefused, "--fix needs confirmation, and this is not a terminal",
		).WithHint("see the plan without --fix, then repeat with --yes")
	}
	if err := r.assembleEngine(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = r.store.Close() }() // what had to be kept was kept by its own call
	watch.Note("Starting state reconciliation...")
	if !req.Fix && !req.Check && !req.Rules.Observe {
		return r.comparedResult(r.comparePlan(ctx)), nil
	}
	begun := false
	err = reportRun(ctx, env, watch, r.report(&result), func() error {
		err := env.Exclusively(ctx, r.id, req.LockWait, func(ctx context.Context) (err error) {
			if req.Fix {
				env.SettleTasks(ctx, watch)
			}
			result, err = r.runRecorded(ctx)
			return err
		})
		if begun = err == nil; begun {
			return result.Verdict
		}
		return err
	})
	if begun {
		return result, nil
	}
	return nil, err
}

// assembleEngine hands the engine everything that it takes from outside. It is the one
// place where store, configuration and fleet meet it.
func (r *reconcileRun) assembleEngine(ctx context.Context) (err error) {
	if r.config, err = r.env.Config(); err != nil {
		return err
	}
	if err := r.setLimits(); err != nil {
		return err
	}
	f, err := r.env.Fleet(ctx)
	if err != nil {
		return err
	}
	r.fleet = f
	if err := r.env.RequireState(); err != nil {
		return err
	}
	if r.store, err = r.env.Store(r.req.Rules.Observe); err != nil {
		return err
	}
	rules := r.req.Rules
	rules.Protected = r.env.Protection(r.config, r.env.Leases(ctx)).ByRule
	rules.Owned = r.ownsSandbox
	rules.Thresholds = r.env.Thresholds
	sources, err := r.recordSources(ctx, f)
	if err == nil {
		r.engine, err = reconcile.New(reconcile.Engine{Fleet: f, Now: r.env.Now, Rules: rules, SeenCounts: r.store, Sources: sources})
	}
	if err != nil {
		return errors.Join(err, r.store.Close())
	}
	return nil
}

// setLimits takes those of the configuration, unless the request says otherwise.
func (r *reconcileRun) setLimits() error {
	common, err := r.env.Limits(r.config, r.req.Production)
	if err != nil {
		return err
	}
	r.limits = reconcile.Limits{Limits: common, RecordsAge: r.req.Rules.RecordsAge}
	if r.req.MaxDelete != nil {
		r.limits.MaxDelete = *r.req.MaxDelete
	}
	if r.req.MaxFraction != nil {
		r.limits.MaxFraction = *r.req.MaxFraction
	}
	return nil
}

func (r *reconcileRun) ownsSandbox(profile string, labels map[string]string) bool {
	p, known := r.config.Find(profile)
	return known && p.Owned.Owns(labels)
}

func (r *reconcileRun) comparePlan(ctx context.Context) reconcile.Plan {
	progress := r.watch.Progress("comparing records with sandboxes")
	defer progress.Done()
	plan := r.engine.Plan(ctx)
	r.addUnlisted(ctx, &plan)
	return plan
}

// addUnlisted says what the listings do not have and the last ones had. Of a sandbox with a row the row says it.
func (r *reconcileRun) addUnlisted(ctx context.Context, plan *reconcile.Plan) {
	found := slices.DeleteFunc(recall.ReadUnlisted(ctx, r.env, r.fleet), func(u recall.UnlistedSandbox) bool {
		return slices.ContainsFunc(plan.Rows, func(row reconcile.Row) bool { return row.Ref == u.Sandbox.Ref() })
	})
	plan.Errors = append(plan.Errors, recall.UnlistedErrors(r.env, found)...)
	for _, line := range recall.UnlistedLines(found) {
		r.watch.Warn(line)
	}
}

// comparedResult is the result of a plan on which nothing is done.
func (r *reconcileRun) comparedResult(plan reconcile.Plan) *ReconcileResult {
	result := &ReconcileResult{RunID: r.id, Plan: plan, Limits: r.limits, Subjects: r.comparedSubjects(plan), diagnose: r.engine.Diagnose, run: r}
	result.Verdict = fixVerdict(plan, nil)
	if r.req.Check && plan.CountNeedingAction() > 0 {
		result.Verdict = r.foundVerdict(plan)
	}
	return result
}

// foundVerdict is the verdict of a check that found something. An interruption says more.
func (r *reconcileRun) foundVerdict(plan reconcile.Plan) error {
	if err := errors.Join(plan.Errors...); fault.Interrupted(err) {
		return err
	}
	return fault.New(fault.KindFound, "%d of %d rows need attention", plan.CountNeedingAction(), len(plan.Rows)).
		WithHint("`%s reconcile --fix` acts on the proved ones; decide about the others yourself", r.env.Process.Name())
}

// runRecorded compares, acts if it may, and writes down what came of it: also a check
// counts what it saw, so it is no plain look.
func (r *reconcileRun) runRecorded(ctx context.Context) (*ReconcileResult, error) {
	plan := r.comparePlan(ctx)
	w, err := r.env.Runs().Begin(ctx, runs.JournalRequired, r.id, r.journalBegin(plan), r.watch)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	result := r.comparedResult(plan)
	if r.req.Fix {
		r.watch.Item(ReconcilePlanned{Result: result})
		r.applyPlan(ctx, result, w)
	}
	var succeeded []string
	if result.Verdict == nil || !r.req.Fix && fault.KindOf(result.Verdict) == fault.KindFound { // a check that finds something has done its work
		for _, side := range plan.Sides {
			succeeded = append(succeeded, side.Profile)
		}
	}
	if lost := w.Finish(ctx, runs.NewConclusion(result.Endings, result.Verdict, succeeded)); lost != nil {
		r.watch.Warn(lost.Error())
	}
	return result, nil
}

func (r *reconcileRun) journalBegin(plan reconcile.Plan) runs.Begin {
	b := runs.Begin{
		Actor: r.env.Actor(), Verb: runs.VerbReconcile,
		Plan: runs.Plan{RunID: r.id, MadeAt: plan.At.UTC(), Items: []runs.Item{}},
	}
	b.Layer, b.CoverageGap = reconcileLayer(r.req.Rules)
	for _, row := range plan.Acting() {
		b.Plan.Items = append(b.Plan.Items, runs.Item{
			Ref: row.Ref, State: row.Box.State, CreatedAt: row.Box.CreatedAt.UTC(), Reason: r.watch.Redact(string(row.Action) + ": " + row.Reason),
		})
	}
	for _, side := range plan.Sides {
		b.Profiles = append(b.Profiles, runs.Profile{Profile: side.Profile, Complete: true, Fleet: side.Fleet})
	}
	return b
}

// reconcileLayer is the layer of a run that looks or acts.
func reconcileLayer(r reconcile.Rules) (layer, coverageGap string) {
	rule := cron.Rule{Reconcile: true}
	for _, f := range []struct {
		flag string
		set  bool
	}{
		{"--adopt", r.Adopt},
		{"--observations", r.Observations > reconcile.DefaultObservations},
		{"--grace", r.Grace > reconcile.DefaultGrace},
		{"--create-grace", r.CreateGrace > reconcile.DefaultCreateGrace},
		{"--max-records-age", r.RecordsAge < reconcile.DefaultRecordsAge},
	} {
		if f.set {
			rule.Narrowing = append(rule.Narrowing, f.flag)
		}
	}
	l, coverageGap := rule.Layer()
	return string(l), coverageGap
}

// applyPlan carries the plan out and reports how every row that was found has ended.
func (r *reconcileRun) applyPlan(ctx context.Context, result *ReconcileResult, w *runs.Run) {
	refuse := func(err error) { result.Refused, result.Verdict = err, err }
	for _, may := range []func() error{
		func() error { return ops.EndCause(ctx, ctx.Err()) },
		func() error { return result.Plan.Refusal(r.limits, r.req.Line...) },
		func() error { return r.checkConfirmed(result.Plan) },
	} {
		if err := may(); err != nil {
			refuse(err)
			return
		}
	}
	done, err := r.engine.Fix(ctx, result.Plan, reconcile.How{
		Limits: r.limits, Wait: r.req.Wait, By: r.env.ActsAs(runs.VerbReconcile), Record: w.Writer,
	})
	if err != nil {
		refuse(err)
		return
	}
	acting := len(result.Plan.Acting())
	progress := r.watch.Progress("acting on the plan")
	defer progress.Done()
	for d := range done {
		result.Endings = append(result.Endings, d.Ending)
		progress.Update(ops.PartText(len(result.Endings), acting))
		if d.Journal != nil {
			r.watch.Item(d.Journal)
		}
		r.watch.Item(d)
	}
	result.Verdict = ops.CauseOr(ctx, fixVerdict(result.Plan, result.Endings))
}

// checkConfirmed refuses rows that a person has not seen in the plan that was confirmed.
func (r *reconcileRun) checkConfirmed(plan reconcile.Plan) error {
	if r.req.Confirmed == nil {
		return nil
	}
	return ops.CheckGrown(r.req.Confirmed, plannedRows(plan))
}

// notConfirmed is what another answer than the number of the rows means.
func notConfirmed(rows int, word string) error {
	return fault.New(fault.KindRefused, "not confirmed: %d rows would be acted on, and the answer was not %s", rows, word).WithHint("repeat with --yes")
}

// plannedRows are what a reconciliation would act on, as questions show it.
func plannedRows(plan reconcile.Plan) (targets []ops.PlannedEnd) {
	for _, row := range plan.Acting() {
		targets = append(targets, ops.PlannedEnd{Ref: row.Ref, Reason: string(row.Action) + ": " + row.Reason, Sandbox: row.Box})
	}
	return targets
}

// actingText counts in words what would be done.
func actingText(plan reconcile.Plan) string {
	n := func(a reconcile.Action) int {
		return len(slices.DeleteFunc(plan.Acting(), func(r reconcile.Row) bool { return r.Action != a }))
	}
	return fmt.Sprintf("%d sandboxes would be terminated, %d records marked, %d sandboxes recorded",
		n(reconcile.ActTerminate), n(reconcile.ActMark), n(reconcile.ActAdopt))
}

// fixVerdict decides the exit code: endings that went wrong, then profiles that
// were left out.
func fixVerdict(plan reconcile.Plan, endings []sandbox.Ending) error {
	verdict := cmp.Or(fleet.Verdict(endings, false), fleet.AllChanged(endings))
	switch {
	case len(plan.Errors) == 0, fault.Interrupted(verdict):
		return verdict
	case len(plan.Sides) == 0:
		return errors.Join(plan.Errors...)
	}
	return fault.New(fault.KindPartial, "not everything could be compared: %d errors", len(plan.Errors))
}
