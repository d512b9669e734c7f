package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"sbx/internal/cleanup"
	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/views"
)

// reconcileRun is one comparison, and what may follow it.
type reconcileRun struct {
	d      *Deps
	o      reconcileOptions
	id     string
	config *config.Config
	store  store.Store
	rules  reconcile.Rules // as the flags say them
	limits reconcile.Limits
	engine *reconcile.Engine
}

func reconcileAll(ctx context.Context, d *Deps, p *output.Printer, o reconcileOptions) error {
	r := &reconcileRun{d: d, o: o, id: d.RunID()}
	if err := o.contradictions(); err != nil {
		return err
	}
	if o.fix && !o.yes && !d.attended() {
		return fault.New(fault.KindRefused, "--fix acts, and nobody can be asked").WithHint("look at the plan without --fix, then repeat with --yes")
	}
	wait, err := sandbox.ParseDuration(o.wait)
	if err != nil {
		return fault.Usage("--wait: %w", err)
	}
	lockWait, err := optionalDuration("--lock-timeout", o.lockWait)
	if err != nil {
		return err
	}
	if err := r.assemble(ctx); err != nil {
		return err
	}
	defer r.store.Close() //nolint:errcheck // what had to be kept was kept by its own call
	p.Note("Starting state reconciliation...")
	if !o.fix && !o.check {
		return r.showPlan(p, r.engine.Plan(ctx))
	}
	return d.Exclusively(ctx, r.id, lockWait, func(ctx context.Context) error {
		if o.fix {
			d.SettleTasks(ctx, p)
		}
		return r.recorded(ctx, p, reconcile.How{Limits: r.limits, Wait: wait, By: d.ActsAs("reconcile")})
	})
}

// recorded compares, acts if it may, and writes down what came of it: also a check
// counts what it saw, so it is no plain look.
func (r *reconcileRun) recorded(ctx context.Context, p *output.Printer, how reconcile.How) error {
	plan := r.engine.Plan(ctx)
	w, err := r.d.BeginRun(ctx, p, r.id, r.beginning(plan, p.Redact))
	if err != nil {
		return err
	}
	defer w.Release()
	how.Journal, how.Redact = w, p.Redact
	var endings []sandbox.Ending
	if r.o.fix {
		endings, err = r.act(ctx, p, plan, how)
	} else {
		err = r.showPlan(p, plan)
	}
	var succeeded []string
	if err == nil || !r.o.fix && fault.KindOf(err) == fault.KindFound { // a check that finds something has done its work
		succeeded = r.profiles(plan)
	}
	if lost := w.Finish(ctx, w.EndEntry(endings, err, succeeded)); lost != nil {
		p.Warn(lost.Error())
	}
	return err
}

// profiles names those that were compared.
func (r *reconcileRun) profiles(plan reconcile.Plan) []string {
	names := make([]string, 0, len(plan.Sides))
	for _, side := range plan.Sides {
		names = append(names, side.Profile)
	}
	return names
}

// beginning is the plan as the journal keeps it.
func (r *reconcileRun) beginning(plan reconcile.Plan, redact func(string) string) cleanup.Begin {
	b := cleanup.Begin{
		Actor: r.d.Actor(), Verb: ops.VerbReconcile,
		Plan: cleanup.Plan{Schema: cleanup.PlanSchema, RunID: r.id, MadeAt: plan.At.UTC(), Items: []cleanup.Item{}},
	}
	b.Layer, b.Shortfall = r.o.layer(r.rules)
	for _, row := range plan.Acting() {
		b.Plan.Items = append(b.Plan.Items, cleanup.Item{
			Ref: row.Ref, State: row.Box.State, CreatedAt: row.Box.CreatedAt.UTC(), Reason: redact(string(row.Action) + ": " + row.Reason),
		})
	}
	for _, side := range plan.Sides {
		b.Profiles = append(b.Profiles, cleanup.ShareRecord{Profile: side.Profile, Complete: true, Fleet: side.Fleet})
	}
	return b
}

// assemble hands the engine everything that it takes from outside. It is the one
// place where store, configuration and fleet meet it.
func (r *reconcileRun) assemble(ctx context.Context) error {
	rules, err := r.o.rules()
	if err != nil {
		return err
	}
	r.rules = rules
	if r.config, err = r.d.Config(); err != nil {
		return err
	}
	if r.limits, err = r.o.limits(r.d, r.config, rules); err != nil {
		return err
	}
	f, err := r.d.Fleet(ctx)
	if err != nil {
		return err
	}
	if r.store, err = r.d.Store(rules.Observe); err != nil {
		return err
	}
	held := r.d.Leases(ctx)
	rules.Protected = r.d.Protection(r.config, held).ByRule
	rules.Owned = r.owned
	rules.Thresholds = r.d.Thresholds
	sources, err := r.sources(ctx, f)
	if err == nil {
		r.engine, err = reconcile.New(reconcile.Engine{Fleet: f, Now: r.d.Now, Rules: rules, Sightings: r.store, Sources: sources})
	}
	if err != nil {
		return errors.Join(err, r.store.Close())
	}
	return nil
}

func (r *reconcileRun) owned(profile string, labels map[string]string) bool {
	p, known := r.config.Find(profile)
	return known && p.Owned.Owns(labels)
}

// act carries the plan out and prints what became of each row.
func (r *reconcileRun) act(ctx context.Context, p *output.Printer, plan reconcile.Plan, how reconcile.How) ([]sandbox.Ending, error) {
	list, err := output.NewList(p, r.doneSpec())
	if err != nil {
		return nil, err
	}
	list.Set("run_id", r.id)
	for _, err := range plan.Errors {
		list.Fail(err)
	}
	if len(plan.Sides) > 0 {
		list.Succeeded()
	}
	endings, trouble := r.carryOut(ctx, p, plan, how, list)
	list.Set("classes", views.ReconcileClasses(plan))
	list.Set("counts", fleet.Count(endings))
	p.Note(views.ReconcileSummary(plan, endings))
	if trouble != nil {
		list.Fail(trouble)
		return endings, list.CloseAs(trouble)
	}
	return endings, list.CloseAs(causeOr(ctx, fixVerdict(plan, endings)))
}

// carryOut gives how every row that was found has ended; trouble means that
// nothing was begun.
func (r *reconcileRun) carryOut(ctx context.Context, p *output.Printer, plan reconcile.Plan, how reconcile.How, list *output.List[reconcile.Done]) ([]sandbox.Ending, error) {
	if err := first(ended(ctx, ctx.Err()), plan.Refusal(r.limits), r.allowed(ctx, p, plan)); err != nil {
		return nil, err
	}
	done, err := r.engine.Fix(ctx, plan, how)
	if err != nil {
		return nil, err
	}
	var endings []sandbox.Ending
	for d := range done {
		endings = append(endings, d.Ending)
		list.Fail(d.Journal)
		if err := fleet.Verdict([]sandbox.Ending{d.Ending}, false); err != nil {
			_ = list.AddFailed(d, err) // Close gives the error of stdout
			continue
		}
		_ = list.Add(d) // Close gives the error of stdout
	}
	return endings, nil
}

// allowed asks for the number of rows where somebody can be asked.
func (r *reconcileRun) allowed(ctx context.Context, p *output.Printer, plan reconcile.Plan) error {
	n := len(plan.Acting())
	if r.o.yes || n == 0 {
		return nil
	}
	p.Warn(summary(plan))
	word := strconv.Itoa(n)
	answer, err := r.d.ask(ctx, newAnswers(r.d), "type "+word+" to go on: ")
	if err != nil {
		return err
	}
	if answer != word {
		return fault.New(fault.KindRefused, "%d rows would be acted on, and the answer was not %s", n, word).WithHint("repeat with --yes")
	}
	return nil
}

// fixVerdict decides the exit code: endings that went wrong, then profiles that
// were left out.
func fixVerdict(plan reconcile.Plan, endings []sandbox.Ending) error {
	verdict := fleet.Verdict(endings, false)
	switch {
	case len(plan.Errors) == 0, fault.Interrupted(verdict):
		return verdict
	case len(plan.Sides) == 0:
		return errors.Join(plan.Errors...)
	}
	return fault.New(fault.KindPartial, "not everything could be compared: %d errors", len(plan.Errors))
}

// first is the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// summary counts in words what would be done.
func summary(plan reconcile.Plan) string {
	n := func(a reconcile.Action) int {
		return len(slices.DeleteFunc(plan.Acting(), func(r reconcile.Row) bool { return r.Action != a }))
	}
	return fmt.Sprintf("%d sandboxes would end, %d records would be marked, %d sandboxes would be put on record",
		n(reconcile.ActTerminate), n(reconcile.ActMark), n(reconcile.ActAdopt))
}
