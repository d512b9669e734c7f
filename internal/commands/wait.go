package commands

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/output"
	"sbx/internal/views"
)

type waitOptions struct{ goal string }

func newWait(d *Deps) *cobra.Command {
	var o waitOptions
	cmd := &cobra.Command{
		Use:     "wait REF",
		GroupID: groupAct,
		Short:   "Wait until a sandbox has ended, or until it runs",
		Long: "Wait until a sandbox has ended, or until it runs.\n\n" +
			"It exits 0 when that is so, however the program in it ended; exit_code tells\n" +
			"that. One that ended while its start was waited for is exit 8. It waits for\n" +
			"ever unless --timeout says otherwise (exit 124).",
		Example:           "sbx wait local/k3v9x2mq7a --timeout 10m\nsbx wait local/k3v9x2mq7a --for running --timeout 30s",
		Args:              usageArgs(cobra.ExactArgs(1), "name one sandbox: sbx wait REF --for ended"),
		ValidArgsFunction: d.completeRefs(false),
	}
	cmd.Flags().StringVar(&o.goal, "for", string(fleet.GoalEnded), "what to wait for: `GOAL` ended or running")
	complete(cmd, "for", goalWords)
	return d.verb(cmd, document{schema: "sbx.wait/v1", shape: output.ShapeItem, columns: output.Names(views.SandboxColumns())},
		func(ctx context.Context, p *output.Printer, args []string) error {
			return waitFor(ctx, d, p, args[0], o)
		})
}

func goalWords() []string {
	words := make([]string, 0, len(fleet.Goals()))
	for _, g := range fleet.Goals() {
		words = append(words, string(g))
	}
	return words
}

func waitFor(ctx context.Context, d *Deps, p *output.Printer, word string, o waitOptions) error {
	if !slices.Contains(goalWords(), o.goal) {
		return fault.Usage("--for: %q is nothing to wait for", o.goal).WithHint("%s", fault.Meant(o.goal, goalWords()))
	}
	f, found, err := d.one(ctx, word)
	if err != nil {
		return err
	}
	progress := p.Progress("waiting for " + found.Ref().String() + " to be " + o.goal)
	defer progress.Done()
	got, err := f.Wait(ctx, found.Ref(), fleet.Goal(o.goal))
	if err != nil {
		return err
	}
	progress.Done()
	return output.ShowItem(p, output.ItemSpec[views.SandboxRow]{
		Schema: "sbx.wait/v1", Columns: views.SandboxColumns(),
		Human: func(s *output.Sheet, r views.SandboxRow) { s.Text(r.Ending()) },
	}, d.row(got))
}
