package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

const reportSchema = "sbx.report/v1"

func newReport(d *Deps) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:     "report",
		GroupID: groupLook,
		Short:   "Measure the tasks beside their targets",
		Long: "Measure the tasks that `sbx run` has launched: how many succeed, how long a stop\n" +
			"takes, how often a limit ends one, each beside its target and with the number of\n" +
			"tasks or attempts that it was taken from. VERDICT is true where the target is met,\n" +
			"false where it is missed, unknown without a sample or a target. A report is no\n" +
			"check: its exit code is 0 whatever it finds.",
		Example: "sbx report\nsbx report --since 7d\nsbx report --since 24h -o json",
		Args:    usageArgs(noArgs, "`sbx tasks show TASK` shows one task"),

		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&since, "since", "", "only tasks of the last `DURATION`: 7d")
	return d.completeVerb(cmd, document{schema: reportSchema, shape: output.ShapeList, columns: output.Names(views.ReportColumns())},
		func(ctx context.Context, p *output.Printer, _ []string) error {
			limit, err := optionalDuration("--since", since)
			if err != nil {
				return err
			}
			r, err := ops.Report(ctx, d.Env, limit)
			if err != nil {
				return err
			}
			return views.ShowReport(p, reportSchema, r)
		})
}
