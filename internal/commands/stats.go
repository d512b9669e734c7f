package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/views"
)

const statsSchema = "sbx.stats/v1"

func newStats(d *Deps) *cobra.Command {
	var req look.StatsRequest
	cmd := &cobra.Command{
		Use:     "stats",
		GroupID: groupLook,
		Short:   "Count sandboxes per provider and compare with the runbook",
		Long: "Count sandboxes per provider and compare with the runbook's limits: how many are active,\n" +
			"how old they are, how many are stuck, how many timed out.\n\n" +
			"A list does not tell whether a running sandbox is stuck: `unjudged` counts those that\n" +
			"are old enough and were not queried, or cannot be judged. --look queries them\n" +
			"(output, events, processor), as cleanup does.\n\n" +
			"Below the table are the runbook's questions that are answered with yes, by the records\n" +
			"of cleanup runs; `flags` in json has all of them. If a provider has no\n" +
			"timeout counter, the rate is that of the last day's tasks, from 20 attempts on.\n\n" +
			"Ages are those of running sandboxes. What a provider does not report is null, never 0.\n" +
			"A provider that does not answer is an error (exit 3) and in no figure; json, ndjson\n" +
			"and yaml have the total of the others.",
		Example: "sbx stats\nsbx stats --look\nsbx stats -o json\nsbx stats --columns provider,active,stuck",
		Args:    d.noWords("`sbx inspect REF` shows one sandbox"),
	}
	cmd.Flags().BoolVar(&req.Look, "look", false, "query those that may be stuck")
	return d.completeVerb(cmd, document{schema: statsSchema, shape: output.ShapeList, columns: output.Names(views.StatsColumns())},
		func(ctx context.Context, p *output.Printer, _ []string) error {
			r, err := look.Stats(ctx, d.Env, req, d.newObserver(p, nil))
			if err != nil {
				return err
			}
			return views.ShowStats(p, statsSchema, r, d.Process.Name())
		})
}
