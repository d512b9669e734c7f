package commands

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

type terminateOptions struct {
	wait, grace string
	production  []string
	delete      bool
	dry         bool
	yes         bool
	patient     bool // --grace was given: grant all of it
}

func newTerminate(d *Deps) *cobra.Command {
	var o terminateOptions
	cmd := &cobra.Command{
		Use:     "terminate REF...",
		GroupID: groupAct,
		Short:   "End sandboxes and verify that they ended",
		Long: "End sandboxes and verify that they ended.\n\n" +
			"Each is read again just before, asked once, and looked at until its end is seen;\n" +
			"one that fails does not stop the others. `-` reads references from standard input.\n\n" +
			"A local program gets TERM and up to 5 s, for as long as it reacts: what ignores\n" +
			"TERM, or notes it and goes on as before, is killed in milliseconds. `--grace`,\n" +
			"given by hand, grants the whole time to any of them.\n\n" +
			"Protected ones (configuration, label sbx/keep=true) are skipped.",
		Example: "sbx terminate local/k3v9x2mq7a\n" +
			"sbx terminate k3v9 --delete --grace 1s\n" +
			"sbx ls --stuck -o name | sbx terminate --dry-run -",
		Args:              usageArgs(cobra.MinimumNArgs(1), "`"+d.Process.Name()+" ls` lists references; `-` reads them from standard input"),
		ValidArgsFunction: d.completeRefs(true),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.delete, "delete", false, "also destroy what the provider would keep: record, logs, snapshot")
	f.StringVar(&o.wait, "wait", sandbox.FormatDuration(fleet.DefaultWait), "look for the end for this `DURATION`, then exit 8")
	f.StringVar(&o.grace, "grace", "5s", "`DURATION` from asking a program to killing it; when given, all of it")
	f.BoolVar(&o.dry, "dry-run", false, "print the plan and do nothing")
	f.BoolVar(&o.yes, "yes", false, "end more than 5 without being asked")
	f.StringSliceVar(&o.production, "production", nil, "end sandboxes of production profile `NAME` (repeatable); a single NAME/ID needs none")
	completeFlag(cmd, "production", func() []string { return d.ProductionNames() })
	doc := document{schema: terminateSchema, shape: output.ShapeList, columns: output.Names(views.EndingColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		o.patient = f.Changed("grace")
		return runTerminate(ctx, d, p, args, o)
	})
}

const terminateSchema = "sbx.terminate/v1"

func (o terminateOptions) readDurations() (wait, grace time.Duration, err error) {
	if wait, err = sandbox.ParseDuration(o.wait); err != nil {
		return 0, 0, fault.Usage("--wait: %w", err)
	}
	if grace, err = sandbox.ParseDuration(o.grace); err != nil {
		return 0, 0, fault.Usage("--grace: %w", err)
	}
	return wait, grace, nil
}

func runTerminate(ctx context.Context, d *Deps, p *output.Printer, args []string, o terminateOptions) error {
	wait, grace, err := o.readDurations()
	if err != nil {
		return err
	}
	if o.dry {
		if err := p.Format.Refuse("terminate --dry-run", output.RowFormats()...); err != nil {
			return err
		}
	}
	words, err := d.readRefWords(ctx, args)
	if err != nil {
		return err
	}
	req := ops.TerminateRequest{
		Words: words, Typed: args, Production: o.production, Delete: o.delete, Patient: o.patient, Yes: o.yes, Grace: grace, Wait: wait,
	}
	if o.dry {
		return planTerminate(ctx, d, p, req)
	}
	spec := output.ListSpec[sandbox.Ending]{Schema: terminateSchema, Columns: views.EndingColumns()}
	if len(p.Columns) == 0 {
		spec.Line = views.EndingLine
	}
	list, err := output.NewList(p, spec)
	if err != nil {
		return err
	}
	result, err := ops.Terminate(ctx, d.Env, req, d.newObserver(p, showEndings(list, true)))
	if err != nil {
		return err
	}
	if result.Refused != nil {
		list.Fail(result.Refused)
	}
	list.Set("counts", fleet.Count(result.Endings))
	if result.Refused != nil {
		return list.Close()
	}
	return list.CloseAs(result.Verdict)
}

// showEndings adds what an operation ends to a list, as it is known. Named = the operator
// has named each of them.
func showEndings(list *output.List[sandbox.Ending], named bool) func(item any) {
	return func(item any) {
		switch i := item.(type) {
		case ops.RunStarted:
			list.Set("run_id", i.RunID)
		case sandbox.Ending:
			views.AddEnding(list, i, named)
		case error:
			list.Fail(i)
		}
	}
}

// planTerminate prints what would be done. There is no cutoff: nothing was chosen by age.
func planTerminate(ctx context.Context, d *Deps, p *output.Printer, req ops.TerminateRequest) error {
	plan, err := ops.PlanTerminate(ctx, d.Env, req, d.newObserver(p, nil))
	if err != nil {
		return err
	}
	return p.ShowAs(output.Document{
		Schema: terminateSchema,
		Fields: output.Fields{{Key: "plan", Value: output.Fields{
			{Key: "run_id", Value: plan.RunID},
			{Key: "cutoff", Value: nil},
			{Key: "selected", Value: plan.Selected},
			{Key: "kept", Value: plan.Kept},
			{Key: "guards", Value: plan.Guards},
		}}},
		Human: func(s *output.Sheet) { views.TerminatePlanPage(s, plan) },
	}, plan.Verdict, plan.Errors...)
}
