package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/drill"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

type drillOptions struct {
	keep      bool
	clean     bool
	scenarios []string
}

const drillSchema = "sbx.drill/v1"

func newDrill(d *Deps) *cobra.Command {
	var o drillOptions
	cmd := &cobra.Command{
		Use:     "drill",
		GroupID: groupAct,
		Short:   "Stage a real incident on this machine and walk the runbook over it",
		Long: "Stage a real incident on the local provider: a busy loop, a process that hangs on a\n" +
			"connection, a memory leak, a silent process, one without a task, and a healthy\n" +
			"one that must survive. Then run the five investigation steps of the \"sandbox stuck\"\n" +
			"runbook, terminate the stuck ones, verify, and remove everything.\n\n" +
			"Time limits are 120 times shorter than the runbook's. Exit 10 when a verdict is wrong.",
		Example: "sbx drill\nsbx drill --scenario leak -o json\nsbx drill --clean",
		Args:    usageArgs(noArgs, "`--scenario NAME` chooses what is staged"),
	}
	f := cmd.Flags()
	f.BoolVar(&o.keep, "keep", false, "investigate only and leave everything running until --clean, for an hour at most")
	f.BoolVar(&o.clean, "clean", false, "remove what earlier drills left, and stage nothing")
	f.StringSliceVar(&o.scenarios, "scenario", nil, "stage only this `NAME` (repeatable)")
	completeFlag(cmd, "scenario", drill.Names)
	return d.completeVerb(cmd, document{
		schema: drillSchema, shape: output.ShapeFree, refuses: []output.FormatName{output.CSV, output.NameOnly},
	}, func(ctx context.Context, p *output.Printer, _ []string) error { return runDrill(ctx, d, p, o) })
}

func runDrill(ctx context.Context, d *Deps, p *output.Printer, o drillOptions) error {
	if o.clean && (o.keep || len(o.scenarios) > 0) {
		return fault.Usage("--clean excludes --keep and --scenario: it stages nothing")
	}
	f, profile, err := d.HostFleet(ctx)
	if err != nil {
		return err
	}
	if o.clean {
		report, err := drill.Clean(ctx, f, d.ActsAs("drill --clean"))
		return views.ShowDrillCleaning(p, drillSchema, report, err)
	}
	binary, err := d.Program()
	if err != nil {
		return err
	}
	progress := p.Progress("drill")
	defer progress.Done()
	report, err := drill.Run(ctx, drill.Options{
		Fleet: f, Profile: profile, Binary: binary, Scenarios: o.scenarios, Keep: o.keep, By: d.ActsAs("drill"), Now: d.Now, Say: progress.Update,
		Cleanup: func(ctx context.Context) (string, error) { return ops.CleanupRecord(ctx, d.Env) },
	})
	if fault.KindOf(err) == fault.KindUsage {
		return err
	}
	progress.Done()
	return views.ShowDrill(p, drillSchema, report, causeOr(ctx, err))
}
