package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/cleanup"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

func newCleanupRuns(d *Deps) *cobra.Command {
	limit := 20
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the bulk endings of this machine, the newest first",
		Long: "List the bulk endings of this machine, the newest first.\n\n" +
			"Every run that was allowed to act has a journal, also one that a guard refused.\n" +
			"A journal that was changed afterwards is said to be (exit 10).",
		Example: "sbx cleanup runs\nsbx cleanup runs -o json",
		Args:    usageArgs(noArgs, "`sbx cleanup show RUN` shows one"),
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "at most `N`; 0 = all")
	doc := document{schema: "sbx.cleanup.runs/v1", shape: output.ShapeList, columns: output.Names(views.RunColumns())}
	return d.verb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		list, errs := d.Histories(ctx, ops.VerbCleanup, limit)
		return views.ShowRows(p, output.ListSpec[cleanup.History]{
			Schema: doc.schema, Columns: views.RunColumns(), Empty: "no run is recorded yet; `" + d.Process.Name() + " cleanup --yes` writes one",
		}, list, errs...)
	})
}
