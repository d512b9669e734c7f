package commands

import (
	"context"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"sbx/internal/output"
)

func newCompletion(d *Deps) *cobra.Command {
	shells := slices.Sorted(maps.Keys(completionScripts()))
	cmd := &cobra.Command{
		Use:     "completion bash|fish|powershell|zsh",
		GroupID: groupTool,
		Short:   "Print the completion script of a shell",
		Long: "Print the completion script of a shell. It completes commands, flags, formats,\n" +
			"columns, profiles and the references of sandboxes.\n\n" +
			"bash:        source <(" + d.Process.Name() + " completion bash)\n" +
			"zsh:         " + d.Process.Name() + " completion zsh > \"${fpath[1]}/_" + d.Process.Name() + "\"\n" +
			"fish:        " + d.Process.Name() + " completion fish | source\n" +
			"powershell:  " + d.Process.Name() + " completion powershell | Out-String | Invoke-Expression",
		Example:   "sbx completion bash\nsbx completion zsh",
		ValidArgs: shells,
		Args:      usageArgs(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), "name one shell: bash, fish, powershell or zsh"),
	}
	doc := document{schema: "sbx.completion/v1", shape: output.ShapeFree, refuses: allBut(output.Table)}
	return d.verb(cmd, doc, func(_ context.Context, p *output.Printer, args []string) error {
		return completionScripts()[args[0]](cmd.Root(), p.Stdout())
	})
}

// completionScripts are the writers of cobra. They call the program by the name
// that it was called by.
func completionScripts() map[string]func(*cobra.Command, io.Writer) error {
	return map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": func(root *cobra.Command, w io.Writer) error { return root.GenPowerShellCompletionWithDesc(w) },
		"zsh":        func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
	}
}

// allBut lists every format but one, for commands whose output is a text of its
// own.
func allBut(one output.FormatName) []output.FormatName {
	return slices.DeleteFunc(output.Formats(), func(f output.FormatName) bool { return f == one })
}
