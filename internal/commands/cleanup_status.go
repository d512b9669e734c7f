package commands

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
	"sbx/internal/views"
)

func newCleanupStatus(d *Deps) *cobra.Command {
	var every string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say whether cleanup runs as often as it should",
		Long: "Say whether cleanup runs as often as it should, by the journals of this machine.\n\n" +
			"It is in order while every profile had a run of --stuck or --older-than 10m (or\n" +
			"less) within two periods that left nothing undone. A run that selects less, a dry\n" +
			"and a refused one are no success. Otherwise it exits 10; with -o nagios it is a\n" +
			"check for a monitor.",
		Example: "sbx cleanup status\nsbx cleanup status --expected-every 15m",
		Args:    usageArgs(noArgs, "`sbx cleanup runs` lists the runs"),
	}
	cmd.Flags().StringVar(&every, "expected-every", sandbox.FormatDuration(triage.DefaultThresholds().CleanupEvery), "how often it should run: a `DURATION`")
	doc := document{schema: "sbx.cleanup.status/v1", shape: output.ShapeItem, columns: output.Names(views.CleanupStatusColumns()), nagios: true}
	return d.verb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		period, err := sandbox.ParseDuration(every)
		if err != nil {
			return fault.Usage("--expected-every: %w", err)
		}
		names, err := d.ProfileNames()
		if err != nil {
			return err
		}
		runs, errs := d.CronRuns(ctx, ops.VerbCleanup)
		status := ops.CleanupStatus(runs, names, period, d.Now())
		if p.Format.Name() == output.Nagios {
			return views.ShowPlugin(p, []views.CheckRow{views.ToolCheck("cleanup", status.Verdict, status.Message, d.StatusHint(status))}, errors.Join(errs...))
		}
		if status.Verdict != sandbox.True {
			errs = append(errs, fault.New(fault.KindFound, "%s", status.Message).WithHint("%s", d.StatusHint(status)))
		}
		return output.ShowItemAs(p, output.ItemSpec[cron.Status]{Schema: doc.schema, Columns: views.CleanupStatusColumns()}, status, errors.Join(errs...), errs...)
	})
}
