package commands

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/fault"
	"sbx/internal/output"
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
