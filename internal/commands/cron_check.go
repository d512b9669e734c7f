package commands

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/cron"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

const cronCheckSchema = "sbx.cron.check/v1"

func newCronCheck(d *Deps) *cobra.Command {
	var words []string
	var tell bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Prove from what is recorded that the cleaning layers run",
		Long: "Prove from what is recorded that the cleaning layers run.\n\n" +
			"A layer is in order when each of the selected profiles had a run by its rule within\n" +
			"two of its periods, and nothing stays because nobody owns it; otherwise it is exit\n" +
			"10. One of which nothing is recorded is unknown, exit 7. A dry run, and a run that\n" +
			"selects less than its layer (--label, a longer --older-than), prove nothing. With\n" +
			"-o nagios it is a monitoring plugin: one line, exit 0, 1, 2 or 3.\n\n" +
			"A run that fails tells of itself; one that never comes cannot. --notify tells of it.",
		Example: "sbx cron check\nsbx cron check --layer stuck -o nagios\nsbx cron check --notify -q",
		Args:    usageArgs(noArgs, "`--layer NAME` chooses what is checked"),
	}
	layerFlag(cmd, &words, "only this `LAYER` (repeatable); without one all four are expected")
	cmd.Flags().BoolVar(&tell, "notify", false, "tell whom the configuration names under notify of what is overdue")
	return d.verb(cmd, document{schema: cronCheckSchema, shape: output.ShapeList, columns: output.Names(views.CronStatusColumns()), nagios: true},
		func(ctx context.Context, p *output.Printer, _ []string) error {
			return checkCron(ctx, d, p, words, tell)
		})
}

func checkCron(ctx context.Context, d *Deps, p *output.Printer, words []string, tell bool) error {
	wanted, err := layers(words)
	if err != nil {
		return err
	}
	c, err := d.Config()
	if err != nil {
		return err
	}
	expected, err := d.ExpectedLayers(wanted)
	if err != nil {
		return err
	}
	runs, errs := d.CronRuns(ctx, "")
	if len(runs) == 0 && len(errs) > 0 {
		return errors.Join(errs...)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	statuses := cron.Judge(expected, runs, d.Now())
	rows := make([]views.CheckRow, len(statuses))
	for i := range statuses {
		hint := d.LayerHint(&statuses[i], ops.Undecided(c))
		if len(expected[i].Unmeasured) > 0 {
			hint = strings.TrimPrefix(hint+"; "+ops.HintMaxSandboxes, "; ")
		}
		rows[i] = views.ToolCheck("layer "+string(statuses[i].Layer), statuses[i].Verdict, statuses[i].Message, hint)
	}
	if tell {
		d.NotifyOverdue(ctx, p, statuses)
	}
	if p.Format.Name() == output.Nagios {
		return views.ShowPlugin(p, rows, nil)
	}
	list, err := output.NewList(p, output.ListSpec[cron.Status]{Schema: cronCheckSchema, Columns: views.CronStatusColumns()})
	if err != nil {
		return err
	}
	for i, s := range statuses {
		if trouble := rows[i].Err(); trouble != nil {
			_ = list.AddFailed(s, trouble) // Close gives the error of stdout
			continue
		}
		_ = list.Add(s) // Close gives the error of stdout
	}
	return list.CloseAs(views.CheckVerdict(rows))
}
