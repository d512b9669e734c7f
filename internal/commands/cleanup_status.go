package commands

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// statusRuns is how many of the newest runs are looked at: two days of one every
// five minutes.
const statusRuns = 600

func newCleanupStatus(d *Deps) *cobra.Command {
	var every string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say whether cleanup runs as often as it should",
		Long: "Say whether cleanup runs as often as it should, by the journals of this machine.\n\n" +
			"It is in order while the last run that left nothing undone is not older than two\n" +
			"periods. A dry or refused run is no success. Otherwise it exits 10; with\n" +
			"-o nagios it is a check for a monitor.",
		Example: "sbx cleanup status\nsbx cleanup status --expected-every 15m",
		Args:    usageArgs(noArgs, "`sbx cleanup runs` lists the runs"),
	}
	cmd.Flags().StringVar(&every, "expected-every", sandbox.FormatDuration(triage.DefaultThresholds().CleanupEvery), "how often it should run: a `DURATION`")
	doc := document{schema: "sbx.cleanup.status/v1", shape: output.ShapeItem, columns: output.Names(statusColumns()), nagios: true}
	return d.verb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		period, err := sandbox.ParseDuration(every)
		if err != nil {
			return fault.Usage("--expected-every: %w", err)
		}
		runs, errs := d.histories(ctx, verbCleanup, statusRuns)
		status := cleanup.StatusOf(runs, "", period, d.now())
		if p.Format.Name() == output.Nagios {
			return showPlugin(p, []checkRow{toolCheck("cleanup", status.Verdict, status.Message, "")}, errors.Join(errs...))
		}
		if status.Verdict != sandbox.True {
			errs = append(errs, fault.New(fault.KindFound, "%s", status.Message).WithHint("`%s cleanup runs` shows what ran", d.Process.Name()))
		}
		return output.ShowItemAs(p, output.ItemSpec[cleanup.Status]{Schema: doc.schema, Columns: statusColumns()}, status, errors.Join(errs...), errs...)
	})
}

func statusColumns() []output.Column[cleanup.Status] {
	type row = cleanup.Status
	return []output.Column[row]{
		{Name: "last_run", Value: func(s row) any { return output.Time(s.LastRun) }},
		{Name: "last_success", Value: func(s row) any { return output.Time(s.LastSuccess) }},
		{Name: "expected_every", Value: func(s row) any { return sandbox.FormatDuration(s.Every) }},
		{Name: "expected_every_seconds", Level: output.Extra, Value: func(s row) any { return output.Seconds(s.Every) }},
		{Name: "verdict", Value: func(s row) any { return s.Verdict }},
		{Name: "message", Value: func(s row) any { return s.Message }},
	}
}
