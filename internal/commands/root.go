package commands

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/output"
	"sbx/internal/views"
)

// NewRoot is the whole command tree.
func NewRoot(d *Deps) *cobra.Command {
	root := &cobra.Command{
		Use:   d.Process.Name(),
		Short: "List, diagnose, terminate and launch AI-agent sandboxes",
		Long: "List, diagnose, terminate and launch AI-agent sandboxes across providers.\n\n" +
			"Everything works without an account: the `local` provider runs\n" +
			"real processes on this machine, inside real limits. `" + d.Process.Name() + " drill` stages an incident to try.",
		Example:           "sbx doctor\nsbx ls --stuck\nsbx cleanup --stuck\nsbx drill\nsbx create --memory 256M -- sleep 60",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              unknownVerb(d),
	}
	version := root.Flags().BoolP("version", "V", false, "print the version")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		verb := newVersion(d)
		switch {
		case *version:
		case d.opensDashboard():
			verb = newDashboard(d)
		default:
			return cmd.Help()
		}
		verb.SetContext(cmd.Context())
		return verb.RunE(verb, nil)
	}
	root.AddGroup(
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupAct, Title: "Act:"},
		&cobra.Group{ID: groupTool, Title: "The tool itself:"},
	)
	root.SetHelpCommandGroupID(groupTool)
	root.SetFlagErrorFunc(d.explainFlagError)
	addGlobals(root.PersistentFlags(), d.Globals)
	completeGlobals(root, d)
	for _, construct := range verbConstructors() {
		root.AddCommand(construct(d))
	}
	root.AddCommand(helpTopics(d)...)
	d.knowTopics(root)
	d.knowProfiles(root)
	root.SetUsageFunc(printUsage)
	plain := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		LayOutHelp(cmd)
		plain(cmd, args)
	})
	if d.isCompleting() {
		prepareCompletion(root)
	}
	return root
}

// verbConstructors lists every verb, in the order of the help page.
func verbConstructors() []func(*Deps) *cobra.Command {
	return []func(*Deps) *cobra.Command{
		newDashboard,
		newLs,
		newInspect,
		newStats,
		newDiagnose,
		newVerify,
		newRunbook,
		newIncident,
		newLogs,
		newEvents,
		newTop,
		newExec,
		newShell,
		newCreate,
		newRun,
		newStop,
		newTasks,
		newAudit,
		newReport,
		newResume,
		newWait,
		newKeep,
		newExtend,
		newTerminate,
		newCleanup,
		newReconcile,
		newDrill,
		newDoctor,
		newProviders,
		newCron,
		newConfig,
		newMCP,
		newVersion,
		newCompletion,
		newRunTask,
	}
}

func addGlobals(f *pflag.FlagSet, g *Globals) {
	f.SortFlags = false
	f.StringSliceVar(&g.Providers, "provider", nil, "only this `PROFILE` (repeatable)")
	f.StringVarP(&g.Output, "output", "o", "", "`FORMAT`: "+formatHelp())
	f.StringSliceVar(&g.Columns, "columns", nil, "show these columns, `a,b`")
	f.StringVar(&g.Timeout, "timeout", "", "limit of the whole command, `DURATION`; then exit 124")
	f.StringVar(&g.Config, "config", "", "read `FILE` instead of the user's configuration")
	f.BoolVar(&g.NoColor, "no-color", false, "no colour")
	f.BoolVarP(&g.Quiet, "quiet", "q", false, "print no notes and no progress on stderr")
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
	completeFlagFunc(root, "columns", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return strings.Split(cmd.Annotations[columnsKey], ","), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
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

// LayOutHelp gives the help of one command its shape: wrapped text, indented examples, and
// commands under the name that this program was started by. It happens when help is shown, since
// no other start needs it. To do it twice changes nothing.
func LayOutHelp(cmd *cobra.Command) {
	name := cmd.Root().Name()
	cmd.Long = wrapParagraphs(withProgramName(cmd.Long, name))
	if cmd.Example != "" {
		lines := strings.Split(cmd.Example, "\n")
		for i, line := range lines {
			lines[i] = "  " + renamedExample(strings.TrimSpace(line), name)
		}
		cmd.Example = strings.Join(lines, "\n")
	}
}

// wrapParagraphs wraps the paragraphs of a text at views.PageWidth. Lines with an indent or in
// columns, such as those of a table, stay as they are.
func wrapParagraphs(text string) string {
	var lines, paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			lines = append(lines, output.WrapText(strings.Join(paragraph, " "), views.PageWidth, "")...)
			paragraph = nil
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || strings.HasPrefix(line, " ") || strings.Contains(line, "  ") {
			end()
			lines = append(lines, line)
			continue
		}
		paragraph = append(paragraph, line)
	}
	end()
	return strings.Join(lines, "\n")
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
