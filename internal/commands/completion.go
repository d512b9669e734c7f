package commands

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

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
		Args:      usageArgs(cobra.MatchAll(oneArg("SHELL"), knownShell), "name one shell: bash, fish, powershell or zsh"),
	}
	doc := document{schema: "sbx.completion/v1", shape: output.ShapeFree, refuses: allBut(output.Table)}
	return d.completeVerb(cmd, doc, func(_ context.Context, p *output.Printer, args []string) error {
		return completionScripts()[args[0]](cmd.Root(), p.Stdout())
	})
}

// knownShell refuses a shell that has no script.
func knownShell(cmd *cobra.Command, args []string) error {
	if !slices.Contains(cmd.ValidArgs, args[0]) {
		return fmt.Errorf("there is no script for %q", args[0])
	}
	return nil
}

// completionScripts are the writers of cobra. They call the program by the name
// that it was called by.
func completionScripts() map[string]func(*cobra.Command, io.Writer) error {
	return map[string]func(*cobra.Command, io.Writer) error{
		"bash":       bashCompletion,
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": func(root *cobra.Command, w io.Writer) error { return root.GenPowerShellCompletionWithDesc(w) },
		"zsh":        func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
	}
}

// bashCompletion is cobra's script, with the one function of the package
// bash-completion that it cannot do without: minimal machines and containers
// have bash and not the package, and every TAB would print an error there.
func bashCompletion(root *cobra.Command, w io.Writer) error {
	if err := root.GenBashCompletionV2(w, true); err != nil {
		return err
	}
	name := strings.NewReplacer("-", "_", ":", "_").Replace(root.Name()) // as cobra spells it
	_, err := fmt.Fprintf(w, `
# Without the package bash-completion, words come as bash splits them.
__%[1]s_init_completion()
{
    COMPREPLY=()
    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    words=("${COMP_WORDS[@]}")
    cword=$COMP_CWORD
    cur=${words[cword]}
    prev=${words[cword - 1]}
}
`, name)
	return err
}
