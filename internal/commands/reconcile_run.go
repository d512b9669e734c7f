package commands

import (
	"context"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

func reconcileRecords(ctx context.Context, d *Deps, p *output.Printer, o *reconcileOptions) error {
	req, err := o.request()
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
	result, err := ops.Reconcile(ctx, d.Env, req, d.observe(p, func(item any) { showFixed(list, item) }))
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
