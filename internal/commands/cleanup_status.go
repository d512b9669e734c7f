package commands

import (
	"context"

	"github.com/spf13/cobra"

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
		r, err := ops.CleanupStatus(ctx, d.Env, ops.CleanupStatusRequest{Every: period})
		if err != nil {
			return err
		}
		return views.ShowCleanupStatus(p, doc.schema, r)
	})
}
