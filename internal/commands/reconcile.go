package commands

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
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
	lockWait                             string
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
		Long: "Compare what is on record with what the providers really run, in both directions:\n" +
			"records without a sandbox, sandboxes without a record, and those that disagree.\n\n" +
			"Without flags it prints the plan and writes nothing. `--check` exits 10 when\n" +
			"anything wants attention, for cron; `--fix` acts on the plan, verified.\n\n" +
			"One look proves no orphan: it must be seen --observations times, --grace apart.\n" +
			"`--check` and `--fix` count as looks, and keep what they saw; a plain plan does not.\n\n" +
			"A profile whose listing or records could not be read whole is left out (exit 3, or\n" +
			"7 when it is the only one). Empty records beside living sandboxes are refused (11).\n\n" +
			"SOURCE of --records is where the records come from; by default the provider's own\n" +
			"control plane where it has records, else sbx's store of what it created:\n" +
			"  provider               the control plane behind the profile\n" +
			"  store                  what sbx created\n" +
			"  tasks:FILE.csv|.jsonl  a dump of the table `tasks` of the coding-agent template\n" +
			"  tasks:postgres://...   that table itself, read only",
		Example: "sbx reconcile\nsbx reconcile --check -q\nsbx reconcile --provider prod --fix --yes\nsbx reconcile --records store --adopt",
		Args:    usageArgs(noArgs, "`--provider` names a profile, `--records` what to compare it with"),
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
	f.BoolVar(&o.check, "check", false, "exit 10 when anything wants attention; counts as a look")
	f.BoolVar(&o.fix, "fix", false, "act on the plan; counts as a look")
	f.BoolVar(&o.yes, "yes", false, "act without being asked")
	f.BoolVar(&o.adopt, "adopt", false, "put orphans on record in sbx's store, and end none")
	f.BoolVar(&o.delete, "delete", false, "also destroy what the provider would keep")
	f.IntVar(&o.observations, "observations", reconcile.DefaultObservations, "looks that prove an orphan or a leak, at least 2: `N`")
	f.StringVar(&o.grace, "grace", sandbox.FormatDuration(reconcile.DefaultGrace), "`DURATION` between two looks that count")
	f.StringVar(&o.createGrace, "create-grace", sandbox.FormatDuration(reconcile.DefaultCreateGrace), "leave alone what is younger than this `DURATION`")
	f.StringVar(&o.recordsAge, "max-records-age", sandbox.FormatDuration(reconcile.DefaultRecordsAge), "act on no dump that is older than this `DURATION`")
	f.IntVar(&o.maxDelete, "max-delete", 0, "refuse to end more than `N` sandboxes, or records; default from the configuration")
	f.StringVar(&o.maxFraction, "max-fraction", "", "refuse more than this `PERCENT` of a profile's fleet; default from the configuration")
	f.StringSliceVar(&o.production, "production", nil, "act on production profile `NAME` (repeatable)")
	f.StringVar(&o.wait, "wait", sandbox.FormatDuration(fleet.DefaultWait), "look for an end for this `DURATION`, then exit 8")
	f.StringVar(&o.lockWait, "lock-timeout", "", "wait this `DURATION` for another run to end, then exit 12")
	f.BoolVar(&o.writeRecords, "write-records", false, "write into the tasks of another application (not supported: that table is read only)")
	completeFlag(cmd, "production", func() []string { return d.ProductionNames() })
	completeFlag(cmd, "records", func() []string { return []string{"provider", "store", "tasks:"} })
}

// refuseContradictions refuses what contradicts itself, before anything is read.
func (o *reconcileOptions) refuseContradictions() error {
	switch {
	case o.check && o.fix:
		return fault.Usage("--check and --fix exclude each other").WithHint("--check looks, --fix acts on what it sees by itself")
	case o.yes && !o.fix:
		return fault.Usage("--yes has no meaning without --fix")
	case o.given("max-delete") && o.maxDelete < 1:
		return fault.Usage("--max-delete: %d is no limit", o.maxDelete).WithHint("write a number from 1")
	case o.writeRecords:
		return fault.New(fault.KindUnsupported, "the tasks of another application are read only").
			WithHint("end the task in its application; leave --write-records out, and sbx reports it")
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
func (o *reconcileOptions) readRequest() (req ops.ReconcileRequest, err error) {
	if err := o.refuseContradictions(); err != nil {
		return req, err
	}
	req = ops.ReconcileRequest{Records: o.records, Check: o.check, Fix: o.fix, Yes: o.yes, Production: o.production}
	if req.Wait, err = sandbox.ParseDuration(o.wait); err != nil {
		return req, fault.Usage("--wait: %w", err)
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
	spec := output.ListSpec[reconcile.Done]{Schema: reconcileSchema, Columns: views.ReconcileDoneColumns()}
	if len(p.Columns) == 0 {
		spec.Line = views.ReconcileDoneLine
	}
	list, err := output.NewList(p, spec)
	if o.fix && err != nil {
		return err
	}
	result, err := ops.Reconcile(ctx, d.Env, req, d.newObserver(p, func(item any) { showFixed(list, item) }))
	if err != nil {
		return err
	}
	if !o.fix {
		return showComparison(p, result, o.check)
	}
	list.Set("classes", views.ReconcileClasses(result.Plan))
	list.Set("counts", fleet.Count(result.Endings))
	p.Note(views.ReconcileSummary(result.Plan, result.Endings))
	list.Fail(result.Refused)
	return list.CloseAs(result.Verdict)
}

// showFixed shows what the operation does, as it is known.
func showFixed(list *output.List[reconcile.Done], item any) {
	switch i := item.(type) {
	case ops.ReconcilePlanned:
		list.Set("run_id", i.Result.RunID)
		for _, err := range i.Result.Plan.Errors {
			list.Fail(err)
		}
		if len(i.Result.Plan.Sides) > 0 {
			list.Succeeded()
		}
	case error:
		list.Fail(i)
	case reconcile.Done:
		if err := fleet.Verdict([]sandbox.Ending{i.Ending}, false); err != nil {
			_ = list.AddFailed(i, err) // Close gives the error of stdout
			return
		}
		_ = list.Add(i) // Close gives the error of stdout
	}
}

// showComparison prints what was compared; nothing is done.
func showComparison(p *output.Printer, result *ops.ReconcileResult, check bool) error {
	plan := result.Plan
	if p.Format.Name() == output.Nagios {
		return views.ShowPlugin(p, views.ReconcileChecks(plan), nil)
	}
	list, err := output.NewList(p, output.ListSpec[reconcile.Row]{
		Schema: reconcileSchema, Columns: views.ReconcileColumns(plan.At, result.Diagnose),
		Empty: "nothing lives, by the records and by the providers",
		Human: func(s *output.Sheet, rows []reconcile.Row) { views.ReconcilePage(s, rows, plan.Guards(result.Limits)) },
	})
	if err != nil {
		return err
	}
	list.Set("run_id", result.RunID)
	list.Set("classes", views.ReconcileClasses(plan))
	list.Set("settled", plan.Settled)
	list.Set("plan", views.ReconcilePlanFields(result))
	for _, err := range plan.Errors {
		list.Fail(err)
	}
	if len(plan.Sides) > 0 {
		list.Succeeded()
	}
	for _, row := range plan.Rows {
		if err := views.ReconcileRowErr(row); check && err != nil {
			_ = list.AddFailed(row, err) // Close gives the error of stdout
			continue
		}
		_ = list.Add(row) // Close gives the error of stdout
	}
	p.Note(views.ReconcileSummary(plan, nil))
	if check && plan.Found() > 0 {
		return list.CloseAs(result.Verdict)
	}
	return list.Close()
}
