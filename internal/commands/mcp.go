package commands

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/mcp"
	"sbx/internal/output"
)

func newMCP(d *Deps) *cobra.Command {
	var allow []string
	cmd := &cobra.Command{
		Use:     "mcp",
		GroupID: groupTool,
		Short:   "Offer the reading verbs to an assistant, as tools over stdio",
		Long: "Offer the reading verbs to an assistant as tools, by the Model Context Protocol over\n" +
			"stdin and stdout. An assistant starts it by itself: name the command `" + d.Process.Name() + " mcp` in its\n" +
			"configuration.\n\n" +
			"Each tool plays one command line and answers with its JSON document, within bounds of\n" +
			"size, time and number at once. What sandboxes wrote is marked as data. No tool ends a\n" +
			"sandbox: the answer has the command line that a person types.\n\n" +
			"--allow stop adds stop-task, --allow resume adds continue-task: for one task by its full\n" +
			"id, through the same checks as `" + d.Process.Name() + " stop` and `" + d.Process.Name() + " resume`.\n" +
			"--provider limits all tools to some profiles.",
		Example: "sbx mcp\nsbx mcp --allow stop,resume\nsbx mcp --provider prod",
		Args:    d.noWords("the assistant calls the tools over stdin"),
	}
	cmd.Flags().StringSliceVar(&allow, "allow", nil, "also act: `stop,resume`")
	completeFlag(cmd, "allow", mcp.Acts)
	return d.completeVerb(cmd, document{refuses: allBut(output.Table)}, func(ctx context.Context, _ *output.Printer, _ []string) error {
		for _, word := range allow {
			if !slices.Contains(mcp.Acts(), word) {
				return fault.Usage("--allow: %q is none of %s", word, strings.Join(mcp.Acts(), ", ")).WithHint(
					"no tool ends sandboxes: `%s terminate` and `%s cleanup` ask a person", d.Process.Name(), d.Process.Name(),
				)
			}
		}
		if d.Process.Stdin.TTY {
			return fault.Usage(
				"stdin is a terminal: an assistant starts `%s mcp` and talks to it", d.Process.Name(),
			).WithHint("docs/ASSISTANTS.md shows the configuration of an assistant")
		}
		s := mcp.Server{Program: d.Process.Name(), Version: d.Version.Version, Allow: allow, Play: d.Play}
		if d.Globals.Config != "" {
			s.Globals = append(s.Globals, "--config="+d.Globals.Config)
		}
		if s.Providers = d.Globals.Providers; len(s.Providers) > 0 {
			var one sync.Mutex
			s.CheckTask = func(id string) error {
				one.Lock()
				defer one.Unlock()
				_, err := d.getTask(ctx, id)
				return err
			}
		}
		return s.Serve(ctx, d.Process.Stdin, d.Process.Stdout)
	})
}
