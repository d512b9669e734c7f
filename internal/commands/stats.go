package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

const statsSchema = "sbx.stats/v1"

func newStats(d *Deps) *cobra.Command {
	var req ops.StatsRequest
	cmd := &cobra.Command{
		Use:     "stats",
		GroupID: groupLook,
		Short:   "Count sandboxes per provider, beside the limits of the runbook",
		Long: "Count sandboxes per provider, beside the limits of the runbook: how many are active,\n" +
			"how old they are, how many are stuck, how many ran into a time limit.\n\n" +
			"Whether a running sandbox is stuck cannot be told from a list: `unjudged` counts those\n" +
			"that are old enough and were not looked at, or cannot be judged. --look asks them\n" +
			"themselves (output, events, processor), as a cleanup does.\n\n" +
			"Below the table stand the questions of the runbook whose answer is yes, by what the\n" +
			"runs of cleanup have recorded; `flags` in json has all of them. Where a provider has no\n" +
			"counter of time-outs, the rate is that of the last day's tasks, from 20 attempts on.\n\n" +
			"Ages are those of running sandboxes. What a provider does not tell is null, never 0.\n" +
			"A provider that cannot be asked is an error (exit 3) and in no figure; json, ndjson\n" +
			"and yaml carry the total of the others.",
		Example: "sbx stats\nsbx stats --look\nsbx stats -o json\nsbx stats --columns provider,active,stuck",
		Args:    usageArgs(noArgs, "`sbx inspect REF` shows one sandbox"),
	}
	cmd.Flags().BoolVar(&req.Look, "look", false, "look at those that may be stuck whether they work")
	return d.completeVerb(cmd, document{schema: statsSchema, shape: output.ShapeList, columns: output.Names(views.StatsColumns())},
		func(ctx context.Context, p *output.Printer, _ []string) error {
			r, err := ops.Stats(ctx, d.Env, req, d.newObserver(p, nil))
			if err != nil {
				return err
			}
			return views.ShowStats(p, statsSchema, r, d.Process.Name())
		})
}
