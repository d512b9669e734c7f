package commands

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"sbx/internal/journal"
	"sbx/internal/output"
	"sbx/internal/views"
)

func newCleanupShow(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show one run that ended sandboxes: its rule, and what became of each",
		Long: "Show one run that ended sandboxes: its rule, who ran it, and what became of each\n" +
			"sandbox, with what was known of it before (-o json).\n\n" +
			"RUN is the run_id that cleanup, reconcile and terminate print, or a beginning of\n" +
			"it that only one run has; `last` is the newest bulk run. The endings of tasks and\n" +
			"drills have runs too, which `sbx inspect` names. Of a run of another host the\n" +
			"sums are known (store.url).",
		Example:           "sbx cleanup show last\nsbx cleanup show r-20261120120000000-k3v9x2",
		Args:              usageArgs(cobra.ExactArgs(1), "`sbx cleanup runs` lists them"),
		ValidArgsFunction: d.completeRuns,
	}
	doc := document{schema: "sbx.cleanup.show/v1", shape: output.ShapeList, columns: output.Names(views.RunOutcomeColumns())}
	return d.verb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		h, err := d.FindRun(ctx, args[0])
		if err != nil {
			return err
		}
		return views.ShowRun(p, doc.schema, h)
	})
}

func (d *Deps) completeRuns(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	disk, err := d.Journals()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	runs, _ := journal.Runs(disk) // what cannot be listed completes nothing
	slices.Reverse(runs)
	return runs, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
