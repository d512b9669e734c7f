package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

func newInspect(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "inspect REF",
		GroupID: groupLook,
		Short:   "Show one sandbox in full, and what is suspicious about it",
		Long: "Show one sandbox in full: record, limits, usage, health, timeline, last output,\n" +
			"exit with its cause, what is suspicious and why, and what to type next.\n\n" +
			"Of a sandbox that is gone it shows what is on record (exit 5): who ended it, when,\n" +
			"by which run, and whether that was seen.\n\n" +
			"It reads and changes nothing. What the provider cannot tell is null and said so;\n" +
			"a part that could not be read is an error beside the rest (exit 3).",
		Example:           "sbx inspect local/k3v9x2mq7a\nsbx inspect k3v9 -o json",
		Args:              usageArgs(cobra.ExactArgs(1), "`sbx ls -o name` lists the references"),
		ValidArgsFunction: d.completeRefs(false),
	}
	return d.completeVerb(cmd, document{schema: inspectSchema, shape: output.ShapeItem, columns: output.Names(views.InspectColumns())},
		func(ctx context.Context, p *output.Printer, args []string) error { return runInspect(ctx, d, p, args) })
}

const inspectSchema = "sbx.inspect/v1"

func runInspect(ctx context.Context, d *Deps, p *output.Printer, args []string) error {
	words, err := d.readRefWords(ctx, args)
	if err != nil {
		return err
	}
	if len(words) > 1 {
		return fault.Usage("inspect shows one sandbox, and %d were given", len(words)).WithHint("`%s ls` shows many", d.Process.Name())
	}
	r, err := ops.Inspect(ctx, d.Env, ops.InspectRequest{Word: words[0]}, d.newObserver(p, nil))
	if err != nil {
		return err
	}
	return views.ShowInspection(p, inspectSchema, r, d.Process.Name())
}
