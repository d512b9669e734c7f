package commands

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/fault"
	"sbx/internal/output"
)

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
// shell variable must never mean "any" or "no limit" (DESIGN section 7).
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
		if text := f.Lookup(name).Value.String(); !printable(text) {
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
		case !printable(entry):
			return nil, fault.Usage("--label: it holds control or invisible characters: %s", output.Escape(entry))
		}
		labels[key] = value
	}
	return labels, nil
}

func printable(text string) bool { return output.Escape(text) == text }
