package commands

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/views"
)

// NewRoot is the whole command tree.
func NewRoot(d *Deps) *cobra.Command {
	root := &cobra.Command{
		Use:   d.Process.Name(),
		Short: "See, diagnose, end and launch AI-agent sandboxes across providers",
		Long: "See, diagnose, end and launch AI-agent sandboxes across providers.\n\n" +
			"Everything works on this machine without an account: the `local` provider runs\n" +
			"real processes inside real limits. `" + d.Process.Name() + " drill` stages an incident to try it on.",
		Example:           "sbx drill\nsbx ls\nsbx create --memory 256M -- sleep 60",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              unknownVerb,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddGroup(
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupAct, Title: "Act:"},
		&cobra.Group{ID: groupTool, Title: "The tool itself:"},
	)
	root.SetHelpCommandGroupID(groupTool)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fault.Usage("%s: %w", cmd.Name(), err).WithHint("`%s --help` lists the flags", cmd.CommandPath())
	})
	addGlobals(root.PersistentFlags(), d.Globals)
	completeGlobals(root, d)
	for _, construct := range verbConstructors() {
		root.AddCommand(construct(d))
	}
	root.AddCommand(newExitCodes(), newLabels(d))
	knowTopics(root)
	layOut(root, d.Process.Name())
	return root
}

// verbConstructors lists every verb, in the order of the help page.
func verbConstructors() []func(*Deps) *cobra.Command {
	return []func(*Deps) *cobra.Command{
		newLs,
		newInspect,
		newStats,
		newLogs,
		newTop,
		newExec,
		newCreate,
		newRun,
		newStop,
		newTasks,
		newReport,
		newResume,
		newWait,
		newTerminate,
		newCleanup,
		newReconcile,
		newDrill,
		newDoctor,
		newProviders,
		newCron,
		newConfig,
		newVersion,
		newCompletion,
		newRunTask,
	}
}

// knowTopics makes `help` refuse what it has no page for; cobra's own shows the
// first page instead.
func knowTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err)
	}
	help.Args = func(_ *cobra.Command, args []string) error {
		found, rest, err := root.Find(args)
		if err == nil && found.HasSubCommands() {
			err = unknownVerb(found, rest)
		}
		return err
	}
	root.RemoveCommand(help) // cobra adds it when it is asked for
}

func addGlobals(f *pflag.FlagSet, g *Globals) {
	f.SortFlags = false
	f.StringSliceVar(&g.Providers, "provider", nil, "only this `PROFILE` (repeatable)")
	f.StringVarP(&g.Output, "output", "o", "", "`FORMAT`: "+formatHelp())
	f.StringSliceVar(&g.Columns, "columns", nil, "show these columns, `a,b`")
	f.StringVar(&g.Timeout, "timeout", "", "give the whole command this `DURATION`, then exit 124")
	f.StringVar(&g.Config, "config", "", "read `FILE` instead of user and project configuration")
	f.BoolVar(&g.NoColor, "no-color", false, "no colour")
	f.BoolVarP(&g.Quiet, "quiet", "q", false, "no notes and no progress on stderr")
	f.CountVarP(&g.Verbose, "verbose", "v", "say more about errors")
}

func completeGlobals(root *cobra.Command, d *Deps) {
	completeFlag(root, "output", func() []string {
		words := strings.Split(output.FormatHelp(output.Formats()...), "|")
		for i, w := range words {
			words[i], _, _ = strings.Cut(w, "=")
		}
		return words
	})
	err := root.RegisterFlagCompletionFunc("columns", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return strings.Split(cmd.Annotations[columnsKey], ","), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	if err != nil {
		panic(err)
	}
	completeFlag(root, "provider", func() []string {
		c, err := d.Config()
		if err != nil {
			return nil
		}
		var names []string
		for _, p := range c.Profiles {
			names = append(names, p.Name)
		}
		return names
	})
}

// newExitCodes is a help topic: `sbx help exit-codes`.
func newExitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What each exit code means to a script or a cron line",
		Long:  views.ExitCodesHelp(),
	}
}

// layOut gives every command's help its shape: indented examples, and commands under the name
// that this program was started by.
func layOut(cmd *cobra.Command, name string) {
	cmd.Long = withProgramName(cmd.Long, name)
	if cmd.Example != "" {
		lines := strings.Split(cmd.Example, "\n")
		for i, line := range lines {
			lines[i] = "  " + renamedExample(strings.TrimSpace(line), name)
		}
		cmd.Example = strings.Join(lines, "\n")
	}
	for _, sub := range cmd.Commands() {
		layOut(sub, name)
	}
}

// withProgramName replaces the program's name where running text quotes a command.
func withProgramName(text, name string) string {
	return strings.ReplaceAll(text, "`sbx ", "`"+name+" ")
}

// renamedExample replaces it at the start of every command of a pipeline.
func renamedExample(line, name string) string {
	parts := strings.Split(line, " | ")
	for i, part := range parts {
		if rest, ours := strings.CutPrefix(part, "sbx"); ours && (rest == "" || rest[0] == ' ') {
			parts[i] = name + rest
		}
	}
	return strings.Join(parts, " | ")
}

// formatsPerLine is how many formats fit beside the flag at 80 columns.
const formatsPerLine = 5

// formatHelp lists the formats, in lines that fit a narrow terminal.
func formatHelp() string {
	var lines []string
	for rest := output.Formats(); len(rest) > 0; {
		n := min(formatsPerLine, len(rest))
		lines, rest = append(lines, output.FormatHelp(rest[:n]...)), rest[n:]
	}
	return strings.Join(lines, "|\n")
}
