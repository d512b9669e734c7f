package commands

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

func newDoctor(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "doctor",
		GroupID: groupTool,
		Short:   "Check this tool, its configuration and its providers",
		Long: "Check this tool, its configuration and its providers.\n\n" +
			"Notes tell what holds here and count as nothing; exit 10 means that something is\n" +
			"wrong, 7 that something could not be asked. It also runs while the configuration\n" +
			"is broken. With -o nagios it is a monitoring plugin: one line, exit 0, 1, 2 or 3.",
		Example: "sbx doctor\nsbx doctor --provider local\nsbx doctor -o nagios",
		Args:    usageArgs(noArgs, "--provider names the profiles to check"),
	}
	doc := document{schema: "sbx.doctor/v1", shape: output.ShapeList, columns: output.Names(views.FindingColumns()), nagios: true}
	return d.verb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error { return doctor(ctx, d, p) })
}

func doctor(ctx context.Context, d *Deps, p *output.Printer) error {
	rows := d.checkFiles(ctx)
	c, err := d.Config()
	switch {
	case err != nil && d.flagsAreWrong(ctx):
		return err
	case err != nil:
		rows = append(rows, brokenConfig(err)...)
	default:
		rows = append(rows, soundConfig(c), checkState(c))
		rows = append(rows, looseSources(c)...)
		rows = append(rows, d.halfSwitched(c)...)
		rows = append(rows, checkLaunch(c)...)
		runs, _ := d.CronRuns(ctx, ops.VerbCleanup) // `cleanup runs` says what cannot be read
		rows = append(rows, d.ownershipChecks(c, runs)...)
	}
	rows = append(rows, d.checkPath()...)
	if c == nil {
		return views.ShowChecks(p, "sbx.doctor/v1", rows, nil)
	}
	f, err := d.Fleet(ctx)
	switch {
	case fault.KindOf(err) == fault.KindUsage:
		return err
	case err != nil:
		rows = append(rows, views.ToolCheck("providers", sandbox.False, err.Error(), fault.HintOf(err)))
		return views.ShowChecks(p, "sbx.doctor/v1", rows, nil)
	}
	progress := p.Progress("checking")
	for _, check := range f.Checks(ctx) {
		check.Message = strings.TrimPrefix(check.Message, check.Provider+": ") // it stands in a column of its own
		rows = append(rows, views.CheckRow{ProviderCheck: check})
	}
	for _, q := range f.Quotas(ctx) {
		rows = append(rows, quotaChecks(q)...)
	}
	progress.Done()
	slices.SortStableFunc(rows, func(a, b views.CheckRow) int { return cmp.Compare(a.Provider, b.Provider) })
	return views.ShowChecks(p, "sbx.doctor/v1", rows, context.Cause(ctx))
}

// flagsAreWrong says that the configuration loads without the flags: then it is
// the command line that has to be corrected.
func (d *Deps) flagsAreWrong(ctx context.Context) bool {
	in := d.Input()
	if len(in.Flags) == 0 {
		return false
	}
	in.Flags = nil
	_, err := config.Load(ctx, in)
	return err == nil
}
