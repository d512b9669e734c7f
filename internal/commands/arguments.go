package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// noArgs refuses arguments; cobra's own check would report them as unknown commands.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("it takes no arguments, and was given %q", args[0])
	}
	return nil
}

// usageArgs turns cobra's complaints about arguments into wrong use.
func usageArgs(check cobra.PositionalArgs, hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fault.Usage("%s: %w", cmd.Name(), err).WithHint("%s", hint)
		}
		return nil
	}
}

func unknownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fault.Usage("unknown command %q", args[0])
	if near := nearVerb(cmd, args[0]); near != "" {
		return err.WithHint("did you mean `%s %s`?", cmd.CommandPath(), near)
	}
	return err.WithHint("`%s --help` lists the commands", cmd.CommandPath())
}

// nearVerb is what a mistyped verb most likely meant: the fewest edits away, else
// one that it begins; "" when none is near.
func nearVerb(cmd *cobra.Command, word string) string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	if near := fault.Nearest(word, names); near != "" {
		return near
	}
	if begun := cmd.SuggestionsFor(word); len(begun) > 0 {
		return begun[0]
	}
	return ""
}

// afterDash takes exactly refs words before the two dashes and a command after
// them: without the dashes a flag of the command would be read as one of sbx.
func afterDash(refs int, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		dash := cmd.ArgsLenAtDash()
		var err *fault.Error
		switch {
		case dash < 0 && len(args) > refs:
			err = fault.Usage("%s: two dashes must stand before the command", cmd.Name())
		case dash > refs:
			err = fault.Usage("%s: %d words too many before the two dashes", cmd.Name(), dash-refs)
		case len(args) < refs || (dash >= 0 && dash < refs):
			err = fault.Usage("%s: no sandbox is named", cmd.Name())
		case len(args) == refs || args[refs] == "":
			err = fault.Usage("%s: no command to run", cmd.Name())
		default:
			return nil
		}
		return err.WithHint("write it like this: %s", example)
	}
}

// refuseEmpty refuses every flag that was given and holds nothing: an unset
// shell variable must never mean "any" or "no limit".
func refuseEmpty(f *pflag.FlagSet) error {
	var err error
	f.Visit(func(flag *pflag.Flag) {
		empty := flag.Value.String() == ""
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			empty = len(list.GetSlice()) == 0
		}
		if empty && err == nil {
			err = fault.Usage("--%s: empty", flag.Name).WithHint("is a shell variable unset?")
		}
	})
	return err
}

// checkTexts refuses in texts that are kept and shown what a terminal would
// obey.
func checkTexts(f *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		if text := f.Lookup(name).Value.String(); !isPrintable(text) {
			return fault.Usage("--%s: it holds control or invisible characters: %s", name, output.Escape(text))
		}
	}
	return nil
}

// readLabels reads K=V; of one key the last counts. The value may be empty.
func readLabels(entries []string) (map[string]string, error) {
	labels := make(map[string]string, len(entries))
	for _, entry := range entries {
		key, value, ok := strings.Cut(entry, "=")
		switch {
		case !ok || key == "":
			return nil, fault.Usage("--label: %q is not KEY=VALUE", entry).WithHint("write it like --label team=agents")
		case !isPrintable(entry):
			return nil, fault.Usage("--label: it holds control or invisible characters: %s", output.Escape(entry))
		}
		labels[key] = value
	}
	return labels, nil
}

func isPrintable(text string) bool { return output.Escape(text) == text }

// completeFlag offers fixed words for a flag. A flag that is not there is a bug
// that the test of the tree finds.
func completeFlag(cmd *cobra.Command, flag string, words func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(errors.Join(errors.New(cmd.Name()+": completion of --"+flag), err))
	}
}

// newLabels is a help topic: `sbx help labels`.
func newLabels(d *Deps) *cobra.Command {
	return &cobra.Command{
		Use:   "labels",
		Short: "Which labels sbx reads, and where each provider keeps them",
		Long:  labelsHelp(d.Types),
	}
}

func labelsHelp(types []providers.Type) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Labels that sbx reads, whoever wrote them\n\n"+
		"  %-15s %s\n  %-15s %s\n",
		sandbox.LabelOwner, "whose it is. A profile that its environment variable alone has",
		"", "switched on lets cleanup and reconcile end only what has this label")
	for _, m := range config.MetadataRows() {
		if m.Own != sandbox.LabelOwner {
			fmt.Fprintf(&b, "  %-15s %s; also %s\n", m.Own, m.Help, m.Default)
		}
	}
	fmt.Fprintf(&b, "  %-15s true, or a time (RFC 3339) until which nothing may end it\n\n", sandbox.LabelKeep)
	b.WriteString("`create` and `run` write the first three. Which other keys name task, agent type and\n" +
		"owner is set under `metadata` in the configuration; an owner that is read so is shown\n" +
		"and makes nothing yours. `sbx config own` writes down what cleanup may end.\n\n" +
		"Where they are written without sbx\n\n")
	for _, t := range types {
		if t.LabelsIn != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", t.Name, strings.ReplaceAll(t.LabelsIn, "`", ""))
		}
	}
	return b.String()
}

// completionLimit bounds what a TAB may cost.
const completionLimit = time.Second

// completeRefs offers the references of sandboxes, each with its name and
// state as the shell's description.
func (d *Deps) completeRefs(many bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if !many && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, stop := context.WithTimeout(cmd.Context(), completionLimit)
		defer stop()
		known, err := ops.ListKnown(ctx, d.Env)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var words []string
		for _, s := range known {
			if !slices.Contains(args, s.Ref().String()) {
				about := output.Escape(strings.TrimSpace(s.Name + " " + string(s.State))) // the shell prints it as it is
				words = append(words, cobra.CompletionWithDesc(s.Ref().String(), about))
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// maxRefs bounds what `-` reads: no fleet is larger, and garbage costs nothing.
const maxRefs = 100_000

// readRefWords gives the references of the command line; `-` reads them from standard input,
// one a line.
func (d *Deps) readRefWords(ctx context.Context, args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		if arg != "-" {
			out = append(out, arg)
			continue
		}
		err := hostfile.Lines(ctx, d.Process.Stdin, func(line string) error {
			word := strings.TrimSpace(line)
			if word == "" || strings.HasPrefix(word, "#") {
				return nil
			}
			if out = append(out, word); len(out) > maxRefs {
				return fault.Usage("there are more than %d", maxRefs)
			}
			return nil
		})
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, err
		case err != nil:
			return nil, fault.Usage("reading references from standard input: %w", err)
		}
	}
	if len(out) == 0 {
		return nil, fault.Usage("no reference was given").WithHint("`%s ls` lists them", d.Process.Name())
	}
	return out, nil
}

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
	return d.completeVerb(cmd, doc, func(_ context.Context, p *output.Printer, args []string) error {
		return completionScripts()[args[0]](cmd.Root(), p.Stdout())
	})
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

// allBut lists every format but one, for commands that have a text format of their own.
func allBut(one output.FormatName) []output.FormatName {
	return slices.DeleteFunc(output.Formats(), func(f output.FormatName) bool { return f == one })
}
