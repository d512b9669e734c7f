package commands

import (
	"errors"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/reconcile"
	"sbx/internal/views"
)

// showPlan prints what was compared; nothing is done.
func (r *reconcileRun) showPlan(p *output.Printer, plan reconcile.Plan) error {
	if p.Format.Name() == output.Nagios {
		return views.ShowPlugin(p, views.ReconcileChecks(plan), nil)
	}
	list, err := output.NewList(p, output.ListSpec[reconcile.Row]{
		Schema: reconcileSchema, Columns: views.ReconcileColumns(plan.At, r.engine.Diagnose),
		Empty: "nothing lives, by the records and by the providers",
		Human: func(s *output.Sheet, rows []reconcile.Row) { views.ReconcilePage(s, rows, plan.Guards(r.limits)) },
	})
	if err != nil {
		return err
	}
	list.Set("run_id", r.id)
	list.Set("classes", views.ReconcileClasses(plan))
	list.Set("settled", plan.Settled)
	list.Set("plan", r.planFields(plan))
	for _, err := range plan.Errors {
		list.Fail(err)
	}
	if len(plan.Sides) > 0 {
		list.Succeeded()
	}
	for _, row := range plan.Rows {
		if err := views.ReconcileRowErr(row); r.o.check && err != nil {
			_ = list.AddFailed(row, err) // Close gives the error of stdout
			continue
		}
		_ = list.Add(row) // Close gives the error of stdout
	}
	p.Note(views.ReconcileSummary(plan, nil))
	if r.o.check && plan.Found() > 0 {
		return list.CloseAs(r.checked(plan))
	}
	return list.Close()
}

// checked is the verdict of a check that found something. An interruption says more.
func (r *reconcileRun) checked(plan reconcile.Plan) error {
	if err := errors.Join(plan.Errors...); fault.Interrupted(err) {
		return err
	}
	return fault.New(fault.KindFound, "%d of %d rows want attention", plan.Found(), len(plan.Rows)).
		WithHint("`%s reconcile --fix` acts on what is proved; the rest is for people", r.d.Process.Name())
}

// planFields is the plan as every verb that ends sandboxes shows it. Nothing was
// chosen by age alone, so there is no cutoff.
func (r *reconcileRun) planFields(plan reconcile.Plan) output.Fields {
	selected, kept := []ops.PlannedEnd{}, []ops.PlannedEnd{}
	for _, row := range plan.Rows {
		if row.Action.Acts() {
			selected = append(selected, ops.PlannedEnd{Ref: row.Ref, Reason: string(row.Action) + ": " + row.Reason})
		} else {
			kept = append(kept, ops.PlannedEnd{Ref: row.Ref, Reason: row.Reason})
		}
	}
	return output.Fields{
		{Key: "run_id", Value: r.id},
		{Key: "cutoff", Value: nil},
		{Key: "selected", Value: selected},
		{Key: "kept", Value: kept},
		{Key: "guards", Value: plan.Guards(r.limits)},
	}
}

func (r *reconcileRun) doneSpec() output.ListSpec[reconcile.Done] {
	spec := output.ListSpec[reconcile.Done]{Schema: reconcileSchema, Columns: views.ReconcileDoneColumns()}
	if p, err := r.d.Printer(); err == nil && len(p.Columns) == 0 {
		spec.Line = views.ReconcileDoneLine
	}
	return spec
}
