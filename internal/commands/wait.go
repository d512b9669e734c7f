package commands

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/views"
)

const waitSchema = "sbx.wait/v1"

func newWait(d *Deps) *cobra.Command {
	var goal string
	cmd := &cobra.Command{
		Use:     "wait REF",
		GroupID: groupAct,
		Short:   "Wait until a sandbox has ended, or until it runs",
		Long: "Wait until a sandbox has ended, or until it runs.\n\n" +
			"It exits 0 then, whatever the program's exit code, which is in\n" +
			"exit_code. With --for running, a sandbox that ends instead is exit 8. It waits\n" +
			"until --timeout (exit 124), or forever.",
		Example:           "sbx wait local/k3v9x2mq7a --timeout 10m\nsbx wait local/k3v9x2mq7a --for running --timeout 30s",
		Args:              usageArgs(oneArg("REF"), "name one sandbox: sbx wait REF --for ended"),
		ValidArgsFunction: d.completeRefs(false, offerWaitable),
	}
	cmd.Flags().StringVar(&goal, "for", string(fleet.GoalEnded), "what to wait for: `GOAL` ended or running")
	completeFlag(cmd, "for", goalWords)
	return d.completeVerb(cmd, document{schema: waitSchema, shape: output.ShapeItem, columns: output.Names(views.SandboxColumns())},
		func(ctx context.Context, p *output.Printer, args []string) error {
			return waitFor(ctx, d, p, args[0], goal)
		})
}

func goalWords() []string { return wordsOf(fleet.Goals()) }

func waitFor(ctx context.Context, d *Deps, p *output.Printer, word, goal string) error {
	if !slices.Contains(goalWords(), goal) {
		return fault.Usage("--for: %q is not a goal", goal).WithHint("%s", fault.Meant(goal, goalWords()))
	}
	reached, err := launch.Wait(ctx, d.Env, launch.WaitRequest{Word: word, Goal: fleet.Goal(goal)}, d.newObserver(p, nil))
	if err != nil {
		return err
	}
	return output.ShowItem(p, output.ItemSpec[views.SandboxRow]{
		Schema: waitSchema, Columns: views.SandboxColumns(),
		Human: func(s *output.Sheet, r views.SandboxRow) { s.Text(r.Ending()) },
	}, views.SandboxRowOf(reached, d.Now()))
}
