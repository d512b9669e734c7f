package commands

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
)

// lineChecker says what is wrong with a command line of sbx. Each line is read by a verb of its own,
// which nobody runs, since flags keep what they have read.
func (d *Deps) lineChecker() func(line string) error {
	scratch := &Deps{Env: d.Env, Globals: &Globals{}, Runbooks: d.Runbooks}
	verbs := map[string]func(*Deps) *cobra.Command{}
	for _, construct := range verbConstructors() {
		verb := construct(scratch)
		for _, name := range append(verb.Aliases, verb.Name()) {
			verbs[name] = construct
		}
	}
	return func(line string) error {
		words := splitLine(line)[1:]
		construct := verbs[strings.Join(words[:min(1, len(words))], "")]
		if construct == nil {
			return fault.Usage("unknown command in %q", line).WithHint("%s", fault.Meant(words[0], slices.Sorted(maps.Keys(verbs))))
		}
		root := &cobra.Command{Use: "sbx"}
		addGlobals(root.PersistentFlags(), &Globals{})
		root.AddCommand(construct(scratch))
		cmd, rest, err := root.Find(words)
		if err != nil {
			return err
		}
		if err := cmd.ParseFlags(rest); err != nil {
			return fault.Usage("%s: %w", cmd.CommandPath(), err)
		}
		err = cmd.ValidateArgs(cmd.Flags().Args())
		if err == nil && onlyHolds(cmd) {
			return fault.Usage("%s: it takes a command", cmd.CommandPath())
		}
		return err
	}
}

// onlyHolds says that a command does nothing itself.
func onlyHolds(cmd *cobra.Command) bool {
	_, verb := cmd.Annotations[columnsKey]
	return cmd.HasSubCommands() && !verb
}

// splitLine splits a line as a shell does, without expanding anything.
func splitLine(line string) []string {
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}
