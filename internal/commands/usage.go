package commands

import (
	"fmt"
	"slices"
	"strings"

	"sbx/internal/views"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroupKey is where a flag keeps the heading under which help lists it.
const flagGroupKey = "sbx-group"

// flagGroup puts flags under one heading of the help page.
type flagGroup struct {
	title string
	flags []string
}

// groupFlags gives every flag its heading, in the order of the groups. A flag that is not there
// is a bug that the test of the tree finds.
func groupFlags(f *pflag.FlagSet, groups []flagGroup) {
	for _, g := range groups {
		for _, name := range g.flags {
			if err := f.SetAnnotation(name, flagGroupKey, []string{g.title}); err != nil {
				panic(err)
			}
		}
	}
}

// printUsage is cobra's usage page within 80 columns, with flags under their headings.
func printUsage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:")
	if cmd.Runnable() {
		b.WriteString("\n  " + cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n  " + cmd.CommandPath() + " [command]")
	}
	if len(cmd.Aliases) > 0 {
		b.WriteString("\n\nAliases:\n  " + cmd.NameAndAliases())
	}
	if cmd.HasExample() {
		b.WriteString("\n\nExamples:\n" + cmd.Example)
	}
	writeCommands(&b, cmd)
	writeFlags(&b, cmd)
	if cmd.HasHelpSubCommands() {
		b.WriteString("\n\nHelp topics:")
		for _, c := range cmd.Commands() {
			if c.IsAdditionalHelpTopicCommand() {
				fmt.Fprintf(&b, "\n  %s help %-11s %s", cmd.CommandPath(), c.Name(), c.Short)
			}
		}
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\n`%s [command] --help` explains a command.", cmd.CommandPath())
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), b.String())
	return err
}

func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	list := func(title, group string) {
		var lines []string
		for _, c := range cmd.Commands() {
			if c.GroupID == group && (c.IsAvailableCommand() || c.Name() == "help") {
				lines = append(lines, fmt.Sprintf("\n  %-*s %s", c.NamePadding(), c.Name(), c.Short))
			}
		}
		if len(lines) > 0 {
			b.WriteString("\n\n" + title + strings.Join(lines, ""))
		}
	}
	for _, g := range cmd.Groups() {
		list(g.Title, g.ID)
	}
	if len(cmd.Groups()) == 0 {
		list("Commands:", "")
	}
}

// writeFlags writes the groups in the order in which their first flags come, the other flags
// behind them and those that every command takes last.
func writeFlags(b *strings.Builder, cmd *cobra.Command) {
	var titles []string
	groups := map[string]*pflag.FlagSet{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		title := strings.Join(f.Annotations[flagGroupKey], "")
		if groups[title] == nil {
			groups[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
			groups[title].SortFlags = cmd.Flags().SortFlags && title == ""
			titles = append(titles, title)
		}
		groups[title].AddFlag(f)
	})
	write := func(heading string, flags *pflag.FlagSet) {
		if flags != nil && flags.HasAvailableFlags() {
			b.WriteString("\n\n" + heading + "\n" + strings.TrimRight(flags.FlagUsagesWrapped(views.PageWidth), "\n"))
		}
	}
	for _, title := range titles {
		if title != "" {
			write(title+":", groups[title])
		}
	}
	heading := "Flags:"
	if len(titles) > 1 && slices.Contains(titles, "") {
		heading = "Other flags:"
	}
	write(heading, groups[""])
	write("Flags of every command:", cmd.InheritedFlags())
}
