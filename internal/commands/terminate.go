package commands

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
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
	fullGrace   bool // --grace was given: grant all of it
}

func newTerminate(d *Deps) *cobra.Command {
	var o terminateOptions
	cmd := &cobra.Command{
		Use:     "terminate REF...",
		GroupID: groupAct,
		Short:   "Terminate sandboxes and verify the ends",
		Long: "Terminate sandboxes and verify the ends.\n\n" +
			"Each is read again just before the request, asked to end once, and watched until the\n" +
			"end is verified. A failure does not stop the others. `-` reads standard input.\n\n" +
			"A local program gets SIGTERM and up to 5 s while it reacts; a program that ignores\n" +
			"SIGTERM, or continues as before, is killed within milliseconds. `--grace`, if\n" +
			"set, gives every program the whole time.\n\n" +
			"The beginning of an id is shown resolved and asked for on a terminal; with --yes, or\n" +
			"without a terminal, it is refused.\n\n" +
			"Protected ones (configuration, label sbx/keep=true) are skipped.",
		Example: "sbx terminate local/k3v9x2mq7a\n" +
			"sbx terminate local/k3v9x2mq7a --delete --grace 1s\n" +
			"sbx ls --stuck -o name | sbx terminate --dry-run -",
		Args:              usageArgs(atLeastOneArg("REF"), "`"+d.Process.Name()+" ls` lists references; `-` reads them from standard input"),
		ValidArgsFunction: d.completeRefs(true, offerTerminable),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.delete, "delete", false, "also delete what the provider would keep: disk, logs, snapshot")
	f.StringVar(&o.wait, "wait", "", "wait `DURATION` for the end to be verified, then exit 8 ("+defaultWait()+")")
	f.StringVar(&o.grace, "grace", sandbox.FormatDuration(end.EndGrace), "`DURATION` between SIGTERM and SIGKILL; if set, always all of it")
	f.BoolVar(&o.dry, "dry-run", false, "print the plan and change nothing")
	f.BoolVar(&o.yes, "yes", false, "terminate more than 5 without confirmation")
	f.StringSliceVar(&o.production, "production", nil, "allow production profile `NAME` (repeatable); not needed for one REF")
	completeFlag(cmd, "production", func() []string { return d.ProductionNames() })
	doc := document{schema: terminateSchema, shape: output.ShapeList, columns: output.Names(views.EndingColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		o.fullGrace = f.Changed("grace")
		return runTerminate(ctx, d, p, args, o)
	})
}

// defaultWait describes fleet.EndOptions.Wait where it is not set.
func defaultWait() string {
	return "default " + sandbox.FormatDuration(fleet.DefaultWait) + ", longer where the sandbox's own grace is"
}

const terminateSchema = "sbx.terminate/v1"

func (o terminateOptions) readDurations() (wait, grace time.Duration, err error) {
	if wait, err = optionalDuration("--wait", o.wait); err != nil {
		return 0, 0, err
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
	req := end.TerminateRequest{
		Line:  d.typedLine(p),
		Words: words, Typed: args, Production: o.production, Delete: o.delete, FullGrace: o.fullGrace, Yes: o.yes, Grace: grace, Wait: wait,
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
	req.Unattended = !d.isAttended()
	act, err := end.PlanTerminate(ctx, d.Env, req)
	if err != nil {
		return err
	}
	done := d.doAct(ctx, act, d.newObserver(p, showEndings(list, true)))
	if done.Refused != nil {
		list.Set(views.TerminateKeys{RunID: act.RunID})
		list.Fail(done.Refused)
	}
	list.Set(views.TerminateKeys{Counts: new(fleet.Count(done.Endings))})
	if done.Refused != nil {
		return list.Close()
	}
	if len(done.Endings) > 1 {
		name := d.Process.Name()
		list.Remark(views.RunSummary(done.Endings, done.Took, done.RunID, name, views.RetryTerminate(done.Endings, name, o.retryFlags())))
	}
	return list.CloseAs(done.Err)
}

// retryFlags are the flags that a repeated run needs.
func (o terminateOptions) retryFlags() []string {
	var flags []string
	if o.delete {
		flags = append(flags, "--delete")
	}
	for _, name := range o.production {
		flags = append(flags, "--production", name)
	}
	return flags
}

// showEndings adds what an operation ends to a list, as it is known. Named = the operator
// has named each of them.
func showEndings(list *output.List[sandbox.Ending], named bool) func(item any) {
	return func(item any) {
		switch i := item.(type) {
		case ops.RunStarted:
			list.Set(views.TerminateKeys{RunID: i.RunID})
		case sandbox.Ending:
			views.AddEnding(list, i, named)
		case error:
			list.Fail(i)
		}
	}
}

// planTerminate prints what would be done. There is no cutoff: nothing was chosen by age.
func planTerminate(ctx context.Context, d *Deps, p *output.Printer, req end.TerminateRequest) error {
	req.Shown = true
	act, err := end.PlanTerminate(ctx, d.Env, req)
	if err != nil {
		return err
	}
	return p.ShowAs(output.Document{
		Schema: terminateSchema,
		Fields: output.FieldsOf(views.TerminateKeys{Plan: views.PlanOf(act.RunID, act.Targets, act.Kept, act.Guards)}),
		Human:  func(s *output.Sheet) { views.TerminatePlanPage(s, act) },
	}, act.Verdict, act.Errors...)
}
