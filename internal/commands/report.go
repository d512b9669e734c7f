package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/metrics"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/views"
)

const reportSchema = "sbx.report/v1"

func newReport(d *Deps) *cobra.Command {
	var since, textfile string
	cmd := &cobra.Command{
		Use:     "report",
		GroupID: groupLook,
		Short:   "Compare task metrics with their targets",
		Long: "Compare the metrics of the tasks that `sbx run` launched with their targets: success\n" +
			"rate, time of a stop, rate of timeouts and others, each with the number of\n" +
			"samples. VERDICT is true where the target is met,\n" +
			"false where it is missed, unknown without a sample or a target. A report is not a\n" +
			"check: its exit code is 0 whatever it finds.",
		Example: "sbx report\nsbx report --since 7d\nsbx report --since 24h -o json\nsbx report --since 7d --textfile /var/lib/node_exporter/sbx-tasks.prom",
		Args:    d.noWords("`sbx tasks show TASK` shows one task"),

		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&since, "since", "", "only tasks since `TIME`: 7d (ago), yesterday, 2026-11-20")
	cmd.Flags().StringVar(&textfile, "textfile", "", "write metrics for Prometheus to `FILE`")
	return d.completeVerb(cmd, document{schema: reportSchema, shape: output.ShapeList, columns: output.Names(views.ReportColumns())},
		func(ctx context.Context, p *output.Printer, _ []string) error {
			if textfile != "" {
				if err := metrics.CheckTextfile(d.Path(textfile)); err != nil {
					return err
				}
			}
			limit, err := optionalAge("--since", since, d.Now())
			if err != nil {
				return err
			}
			r, err := launch.Report(ctx, d.Env, limit)
			if err != nil {
				return err
			}
			if err := r.WriteTextfile(d.Env, textfile); err != nil {
				p.Warn(err.Error())
			}
			return views.ShowReport(p, reportSchema, r)
		})
}
