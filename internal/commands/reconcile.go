package commands

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/metrics"
	"sbx/internal/ops/end"
	"sbx/internal/output"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

const reconcileSchema = "sbx.reconcile/v1"

// reconcileOptions are the flags of reconcile, as typed.
type reconcileOptions struct {
	records                              string
	check, fix, yes, adopt, delete       bool
	writeRecords                         bool
	observations, maxDelete              int
	grace, createGrace, recordsAge, wait string
	lockWait, textfile, ping             string
	maxFraction                          string
	production                           []string
	given                                func(flag string) bool
}

func newReconcile(d *Deps) *cobra.Command {
	var o reconcileOptions
	cmd := &cobra.Command{
		Use:     "reconcile",
		GroupID: groupAct,
		Short:   "Compare records with what really runs, and repair",
		Long: "Compare the records with what the providers really run, in both directions:\n" +
			"records without a sandbox, sandboxes without a record, and those that disagree.\n\n" +
			"Without flags it prints the plan and changes nothing. `--check` exits 10 when\n" +
			"anything needs attention, for cron; `--fix` carries the plan out and verifies it.\n\n" +
			"One observation does not prove an orphan: --observations of them, --grace apart, do.\n" +
			"`--check` and `--fix` record an observation; a plain plan does not.\n\n" +
			"A profile with an incomplete listing or incomplete records is skipped (exit 3, or\n" +
			"7 when it is the only one). Empty records beside running sandboxes are refused (11).\n\n" +
			"SOURCE of --records is where the records come from; by default the provider's own\n" +
			"control plane where it has records, else sbx's store of what it created:\n" +
			"  provider               the control plane behind the profile\n" +
			"  store                  what sbx created\n" +
			"  tasks:FILE.csv|.jsonl  a dump of the table `tasks` of the agent template\n" +
			"  tasks:postgres://...   that table itself, read only",
		Example: "sbx reconcile\nsbx reconcile --check -q\nsbx reconcile --provider prod --fix --yes\nsbx reconcile --records store --adopt",
		Args:    d.noWords("`--provider` names a profile, `--records` the records"),
	}
	o.addFlags(cmd, d)
	doc := document{
		schema: reconcileSchema, shape: output.ShapeList,
		columns: unionOf(output.Names(views.ReconcileColumns(time.Time{}, nil)), output.Names(views.ReconcileDoneColumns())), nagios: true,
	}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		o.given = cmd.Flags().Changed
		if !o.check {
			if err := p.Format.Refuse("reconcile without --check", output.Nagios); err != nil {
				return err
			}
		}
		return reconcileRecords(ctx, d, p, &o)
	})
}

func (o *reconcileOptions) addFlags(cmd *cobra.Command, d *Deps) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.records, "records", "", "compare with the records of `SOURCE`")
	f.BoolVar(&o.check, "check", false, "exit 10 when anything needs attention; records an observation")
	f.BoolVar(&o.fix, "fix", false, "carry out the plan; records an observation")
	f.BoolVar(&o.yes, "yes", false, "do not ask for confirmation")
	f.BoolVar(&o.adopt, "adopt", false, "record orphans in sbx's store, and terminate none")
	f.BoolVar(&o.delete, "delete", false, "also delete what the provider would keep")
	f.IntVar(&o.observations, "observations", reconcile.DefaultObservations, "observations that prove an orphan or a leak, `N` (at least 2)")
	f.StringVar(&o.grace, "grace", sandbox.FormatDuration(reconcile.DefaultGrace), "`DURATION` between two observations that count")
	f.StringVar(&o.createGrace, "create-grace", sandbox.FormatDuration(reconcile.DefaultCreateGrace), "skip sandboxes younger than `DURATION`")
	f.StringVar(&o.recordsAge, "max-records-age", sandbox.FormatDuration(reconcile.DefaultRecordsAge), "refuse a dump older than `DURATION`")
	f.IntVar(&o.maxDelete, "max-delete", 0, "refuse more than `N` sandboxes or records (default: configuration)")
	f.StringVar(&o.maxFraction, "max-fraction", "", "refuse more than this `PERCENT` of a profile (default: configuration)")
	f.StringSliceVar(&o.production, "production", nil, "allow production profile `NAME` (repeatable)")
	f.StringVar(&o.wait, "wait", "", "wait `DURATION` for each end to be verified, then exit 8 ("+defaultWait()+")")
	f.StringVar(&o.lockWait, "lock-timeout", "", "wait `DURATION` for another run to finish, then exit 12")
	f.StringVar(&o.textfile, "textfile", "", "write metrics for Prometheus to `FILE`; with --check or --fix")
	f.StringVar(&o.ping, "ping", "", "ping the dead-man's switch at `URL` at start and end; with --check or --fix")
	f.BoolVar(&o.writeRecords, "write-records", false, "not supported: tables of other applications are read-only")
	completeFlag(cmd, "production", func() []string { return d.ProductionNames() })
	completeFlag(cmd, "records", func() []string { return []string{"provider", "store", "tasks:"} })
}

// refuseContradictions refuses what contradicts itself, before anything is read.
func (o *reconcileOptions) refuseContradictions() error {
	switch {
	case o.check && o.fix:
		return fault.Usage("--check and --fix exclude each other").WithHint("--check only checks; --fix checks and acts")
	case (o.textfile != "" || o.ping != "") && !o.check && !o.fix:
		return fault.Usage("--textfile and --ping need --check or --fix").WithHint("a plan that somebody looks at is no run")
	case o.yes && !o.fix:
		return fault.Usage("--yes needs --fix")
	case o.given("max-delete") && o.maxDelete < 1:
		return fault.Usage("--max-delete: %d is not a limit", o.maxDelete).WithHint("write a number from 1")
	case o.writeRecords:
		return fault.New(fault.KindUnsupported, "tables of other applications are read-only").
			WithHint("end the task in its application; without --write-records sbx reports it")
	}
	return nil
}

// readRules reads the flags that say what is judged, and how.
func (o *reconcileOptions) readRules() (reconcile.Rules, error) {
	r := reconcile.Rules{Observations: o.observations, Observe: o.check || o.fix, Adopt: o.adopt, Delete: o.delete}
	for _, d := range []struct {
		flag, text string
		to         *time.Duration
	}{{"grace", o.grace, &r.Grace}, {"create-grace", o.createGrace, &r.CreateGrace}, {"max-records-age", o.recordsAge, &r.RecordsAge}} {
		got, err := sandbox.ParseDuration(d.text)
		if err != nil {
			return r, fault.Usage("--%s: %w", d.flag, err)
		}
		*d.to = got
	}
	return r, nil
}

// readRequest reads the flags; every mistake is fault.KindUsage.
func (o *reconcileOptions) readRequest() (req end.ReconcileRequest, err error) {
	if err := o.refuseContradictions(); err != nil {
		return req, err
	}
	req = end.ReconcileRequest{Records: o.records, Check: o.check, Fix: o.fix, Yes: o.yes, Production: o.production, Textfile: o.textfile, Ping: o.ping}
	if o.textfile != "" {
		if err := metrics.CheckTextfile(o.textfile); err != nil {
			return req, err
		}
	}
	if req.Wait, err = optionalDuration("--wait", o.wait); err != nil {
		return req, err
	}
	if req.LockWait, err = optionalDuration("--lock-timeout", o.lockWait); err != nil {
		return req, err
	}
	if req.Rules, err = o.readRules(); err != nil {
		return req, err
	}
	if o.given("max-delete") {
		req.MaxDelete = &o.maxDelete
	}
	if o.given("max-fraction") {
		percent, err := config.ParsePercent(o.maxFraction)
		if err != nil {
			return req, fault.Usage("--max-fraction: %w", err)
		}
		req.MaxFraction = new(int(percent))
	}
	return req, nil
}

// unionOf gives every word once, in the order of their first.
func unionOf(lists ...[]string) []string {
	var all []string
	seen := map[string]bool{}
	for _, list := range lists {
		for _, word := range list {
			if !seen[word] {
				seen[word] = true
				all = append(all, word)
			}
		}
	}
	return all
}

func reconcileRecords(ctx context.Context, d *Deps, p *output.Printer, o *reconcileOptions) error {
	req, err := o.readRequest()
	if err != nil {
		return err
	}
	req.Line = d.typedLine(p)
	spec := output.ListSpec[reconcile.Done]{Schema: reconcileSchema, Columns: views.ReconcileDoneColumns()}
	if len(p.Columns) == 0 {
		spec.Line = views.ReconcileDoneLine
	}
	list, err := output.NewList(p, spec)
	if o.fix && err != nil {
		return err
	}
	watch := d.newObserver(p, func(item any) { showFixed(list, item) })
	var result *end.ReconcileResult
	if o.fix && !o.yes && d.isAttended() {
		result, err = confirmFix(ctx, d, list, req, watch)
	} else {
		result, err = end.Reconcile(ctx, d.Env, req, watch)
	}
	if err != nil {
		return err
	}
	if !o.fix {
		return showComparison(p, result, o.check)
	}
	list.Set(views.ReconcileKeys{Classes: new(views.ReconcileClasses(result.Plan)), Counts: new(fleet.Count(result.Endings))})
	p.Note(views.ReconcileSummary(result.Plan, result.Endings))
	list.Fail(result.Refused)
	return list.CloseAs(result.Verdict)
}

// confirmFix compares, which counts as an observation, asks whether the plan may be carried out, and does it.
func confirmFix(ctx context.Context, d *Deps, list *output.List[reconcile.Done], req end.ReconcileRequest, watch *observer) (*end.ReconcileResult, error) {
	looks := req
	looks.Fix = false
	plan, err := end.Reconcile(ctx, d.Env, looks, watch)
	if err != nil {
		return nil, err
	}
	act := plan.Act()
	allowed, refused := act.Permit(ctx, watch.confirm)
	if refused != nil || len(act.Targets) == 0 { // nothing is left to do
		showFixed(list, end.ReconcilePlanned{Result: plan})
		plan.Refused, plan.Verdict = refused, cmp.Or(refused, plan.Verdict)
		return plan, nil
	}
	done := act.Do(ctx, watch, allowed)
	result, _ := done.Detail.(*end.ReconcileResult)
	if result == nil {
		return nil, done.Refused
	}
	return result, nil
}

// showFixed shows what the operation does, as it is known.
func showFixed(list *output.List[reconcile.Done], item any) {
	switch i := item.(type) {
	case end.ReconcilePlanned:
		list.Set(views.ReconcileKeys{RunID: i.Result.RunID})
		for _, err := range i.Result.Plan.Errors {
			list.Fail(err)
		}
		if len(i.Result.Plan.Sides) > 0 {
			list.Succeeded()
		}
	case error:
		list.Fail(i)
	case reconcile.Done:
		list.AddResult(i, fleet.Verdict([]sandbox.Ending{i.Ending}, false))
	}
}

// showComparison prints what was compared; nothing is done.
func showComparison(p *output.Printer, result *end.ReconcileResult, check bool) error {
	plan := result.Plan
	if p.Format.Name() == output.Nagios {
		return views.ShowPlugin(p, views.ReconcileChecks(plan), nil)
	}
	list, err := output.NewList(p, output.ListSpec[reconcile.Row]{
		Schema: reconcileSchema, Columns: views.ReconcileColumns(plan.At, result.Diagnose),
		Empty: "no records and no running sandboxes",
		Human: func(s *output.Sheet, rows []reconcile.Row) { views.ReconcilePage(s, rows, plan.Guards(result.Limits)) },
	})
	if err != nil {
		return err
	}
	list.Set(views.ReconcileKeys{RunID: result.RunID, Classes: new(views.ReconcileClasses(plan)), Settled: &plan.Settled, Plan: views.ReconcilePlan(result)})
	for _, err := range plan.Errors {
		list.Fail(err)
	}
	if len(plan.Sides) > 0 {
		list.Succeeded()
	}
	for _, row := range plan.Rows {
		var err error
		if check {
			err = views.ReconcileRowErr(row)
		}
		list.AddResult(row, err)
	}
	p.Note(views.ReconcileSummary(plan, nil))
	if check && plan.CountNeedingAction() > 0 {
		return list.CloseAs(result.Verdict)
	}
	return list.Close()
}
