package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/drill"
	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/tui"
	"sbx/internal/views"
)

type drillOptions struct {
	keep      bool
	clean     bool
	live      bool
	scenarios []string
	runbook   string
}

const drillSchema = "sbx.drill/v1"

func newDrill(d *Deps) *cobra.Command {
	var o drillOptions
	cmd := &cobra.Command{
		Use:     "drill",
		GroupID: groupAct,
		Short:   "Stage a real incident on this machine and walk the runbook over it",
		Long: "Stage a real incident on the local provider and run the shipped runbook for it: for\n" +
			"sandbox-stuck a busy loop, a process that hangs on a connection, a memory leak, a silent\n" +
			"process, one without a task, and a healthy one that must survive. Each is judged, the\n" +
			"runbook ends what it finds, the rest is terminated, verified and removed.\n\n" +
			"--runbook idle-after-completion stages workers that stay after their task,\n" +
			"--runbook sigkill-137 a pipeline of five agents of which one is killed for memory.\n\n" +
			"--live opens the dashboard over them, with the limits of the drill, so that you work through\n" +
			"the seven steps yourself. All of them are removed when you leave it, however you do; what a\n" +
			"killed drill leaves, the next command that reads `local` removes.\n\n" +
			"A drill sees and ends nothing but what it has staged; it is no incident, and notifies\n" +
			"nobody. Time limits are 120 times shorter than the runbook's. Its gates are answered,\n" +
			"steps of people are skipped. -v shows each step and all evidence. Exit 10 when a verdict is wrong, or an act of the runbook fails.",
		Example: "sbx drill\nsbx drill --live\nsbx drill --scenario leak -o json\nsbx drill --runbook sigkill-137\nsbx drill --clean",
		Args:    d.noWords("`--scenario NAME` chooses what is staged"),
	}
	f := cmd.Flags()
	f.BoolVar(&o.keep, "keep", false, "investigate only and leave everything running until --clean, for an hour at most")
	f.BoolVar(&o.live, "live", false, "open the dashboard over what is staged, and remove it when you leave")
	f.BoolVar(&o.clean, "clean", false, "remove what earlier drills left, and stage nothing")
	f.StringSliceVar(&o.scenarios, "scenario", nil, "stage only this `NAME` (repeatable)")
	f.StringVar(&o.runbook, "runbook", drill.DefaultRunbook, "stage the incident of the shipped runbook `ID`")
	completeFlag(cmd, "scenario", drill.Names)
	completeFlag(cmd, "runbook", drill.Runbooks)
	return d.completeVerb(cmd, document{
		schema: drillSchema, shape: output.ShapeFree, refuses: []output.FormatName{output.CSV, output.NameOnly},
	}, func(ctx context.Context, p *output.Printer, _ []string) error { return runDrill(ctx, d, p, o) })
}

func runDrill(ctx context.Context, d *Deps, p *output.Printer, o drillOptions) error {
	if o.live {
		return runLiveDrill(ctx, d, p, o)
	}
	if o.clean && (o.keep || len(o.scenarios) > 0 || o.runbook != drill.DefaultRunbook) {
		return fault.Usage("--clean excludes --keep, --scenario and --runbook: it stages nothing")
	}
	if o.clean {
		f, _, err := d.HostFleet(ctx)
		if err != nil {
			return err
		}
		report, err := drill.Clean(ctx, f, d.ActsAs("drill --clean"), d.EndsOpener(p, drill.LeftByDrill()))
		return views.ShowDrillCleaning(p, drillSchema, report, err)
	}
	progress := p.Progress("drill")
	defer progress.Done()
	options, err := d.drillOptions(ctx, o)
	if err != nil {
		return err
	}
	options.Watch, options.Say = p, progress.Update
	report, err := drill.Run(ctx, options)
	if fault.KindOf(err) == fault.KindUsage {
		return err
	}
	progress.Done()
	return views.ShowDrill(p, drillSchema, report, causeOr(ctx, err))
}

// drillOptions are what every drill needs.
func (d *Deps) drillOptions(ctx context.Context, o drillOptions) (drill.Options, error) {
	if err := drill.CanStage(o.runbook); err != nil {
		return drill.Options{}, err
	}
	catalog, err := runbook.Library{Shipped: d.Runbooks}.Load(ctx) // one of the operator's could end something else
	if err != nil {
		return drill.Options{}, err
	}
	book, err := catalog.Find(o.runbook)
	if err != nil {
		return drill.Options{}, err
	}
	binary, err := d.Program()
	return drill.Options{Env: d.Env, Book: book, Binary: binary, Scenarios: o.scenarios, Keep: o.keep, By: d.ActsAs("drill")}, err
}

// checkLiveDrill refuses what a screen cannot be or show.
func (d *Deps) checkLiveDrill(p *output.Printer, o drillOptions) error {
	switch {
	case o.keep || o.clean:
		return fault.Usage("--live excludes --keep and --clean").WithHint(
			"it removes what it has staged when you leave it; `%s drill --keep` leaves it", d.Process.Name(),
		)
	case o.runbook != drill.DefaultRunbook:
		return fault.Usage("--live shows the runbook %s alone", drill.DefaultRunbook).WithHint(
			"`%s drill --runbook %s` walks that one by itself", d.Process.Name(), o.runbook,
		)
	case p.Format.Name() != output.Table:
		return fault.Usage("--live is a screen and no document").WithHint("`%s drill -o %s` is one", d.Process.Name(), p.Format.Name())
	case !d.opensDashboard():
		return fault.Usage("drill --live needs a terminal").WithHint("`%s drill` walks the runbook by itself, without a terminal, too", d.Process.Name())
	}
	c, err := d.Config()
	if err != nil {
		return err
	}
	return tui.CheckKeys(c.Keys)
}

// runLiveDrill opens the dashboard over what it stages, and removes that when the dashboard is left.
func runLiveDrill(ctx context.Context, d *Deps, p *output.Printer, o drillOptions) error {
	if err := d.checkLiveDrill(p, o); err != nil {
		return err
	}
	progress := p.Progress("drill")
	defer progress.Done()
	options, err := d.drillOptions(ctx, o)
	if err != nil {
		return err
	}
	options.Watch, options.Say = p, progress.Update
	report, err := drill.Live(ctx, options, func(ctx context.Context, stage drill.Stage) error {
		progress.Done()
		staged := *d
		staged.Env, staged.stage = stage.Env, &stage
		return staged.runDashboard(ctx, p)
	})
	if report.Staged > 0 {
		progress.Done()
		p.Note(views.LiveDrillLine(report))
	}
	return err
}
