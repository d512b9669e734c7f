package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// noArgs refuses arguments; cobra's own check would report them as unknown commands.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("it takes no arguments, but %q was given", args[0])
	}
	return nil
}

// noWords is for a verb that takes no arguments. One that is a profile is named by --provider, and
// a list needs no word for it: `tasks ls`.
func (d *Deps) noWords(hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		text := hint
		if len(args) == 1 && allFlags(cmd).Lookup("provider") != nil && d.isProfile(strings.TrimSuffix(args[0], "/")) {
			text = "`" + cmd.CommandPath() + " --provider " + strings.TrimSuffix(args[0], "/") + "`"
		}
		if len(args) == 1 && (args[0] == "ls" || args[0] == "list") {
			text = "`" + cmd.CommandPath() + "`"
		}
		if len(args) == 1 {
			text = cmp.Or(d.flagForWord(cmd, args[0]), text)
		}
		return usageArgs(noArgs, text)(cmd, args)
	}
}

// knowProfiles makes each verb that takes references refuse a profile as a word of its own, before anything is called: of
// `terminate e2b ID` the second word alone would be ended.
func (d *Deps) knowProfiles(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		d.knowProfiles(sub)
	}
	check := cmd.Args
	if check == nil || !strings.Contains(cmd.Use, "REF") && !strings.Contains(cmd.Use, "TASK") {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		words := args
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			words = args[:dash]
		}
		if len(words) > 1 && (d.isProfile(words[0]) || slices.ContainsFunc(d.Types, func(t providers.Type) bool { return t.Name == words[0] })) {
			return fault.Usage("%s: %q is a profile, not a sandbox", cmd.Name(), words[0]).WithHint("%s", d.joinedRef(words[0], words[1]))
		}
		return check(cmd, args)
	}
}

// joinedRef is the hint for a profile and an id that were typed as two words.
func (d *Deps) joinedRef(profile, id string) string {
	argv := slices.Clone(d.Process.Args)
	at := slices.Index(argv, profile)
	if at < 1 || at+1 >= len(argv) || argv[at+1] != id || strings.Contains(id, "/") || d.isProfile(id) {
		return "write a sandbox as " + profile + "/ID"
	}
	argv[0], argv[at+1] = "sbx", profile+"/"+id
	line := shellescape.QuoteCommand(slices.Delete(argv, at, at+1))
	if !isPrintable(line) {
		return "write a sandbox as " + profile + "/ID"
	}
	return "did you mean `" + line + "`?"
}

// flagForWord is the hint for a word that a flag stands for, or that was typed as the value of a switch; "" = for none.
func (d *Deps) flagForWord(cmd *cobra.Command, word string) string {
	flags := allFlags(cmd)
	if at := slices.Index(d.Process.Args, word); at > 0 {
		before := d.Process.Args[at-1]
		f, attached := typedFlag(flags, before)
		on, err := strconv.ParseBool(strings.NewReplacer("yes", "true", "no", "false").Replace(word))
		switch {
		case !strings.HasPrefix(before, "-") || err != nil || f == nil || attached || f.NoOptDefVal == "":
		case on:
			return "--" + f.Name + " is a switch: `" + d.lineWith(word, instead{}) + "`"
		default:
			return "--" + f.Name + " is a switch that is off: `" + d.lineWith(before, instead{whole: true}) + "`"
		}
	}
	switch state := sandbox.State(word); {
	case word == "stuck" && flags.Lookup("stuck") != nil:
		return "did you mean `" + d.lineWith(word, instead{words: []string{"--stuck"}}) + "`?"
	case word == "all" && cmd.Name() == "cleanup":
		return "it covers all profiles, and a rule selects: `sbx cleanup --older-than 10m` prints a plan"
	case d.ageForWord(cmd, word) != "":
		return d.ageForWord(cmd, word)
	case flags.Lookup("state") != nil && cmd.Name() != "tasks" && slices.Contains(sandbox.States(), state):
		return "did you mean `" + d.lineWith(word, instead{words: []string{"--state", word}}) + "`?"
	}
	return ""
}

// isProfile says whether a word is a configured profile; false also where the configuration cannot be read.
func (d *Deps) isProfile(word string) bool {
	c, err := d.Config()
	return err == nil && slices.ContainsFunc(c.Profiles, func(p config.Profile) bool { return p.Name == word })
}

// oneArg takes exactly one word, atLeastOneArg one or more and atMostOneArg one or none; what is the
// placeholder of the usage line.
func oneArg(what string) cobra.PositionalArgs {
	return cobra.MatchAll(atLeastOneArg(what), atMostOneArg(what))
}

func atLeastOneArg(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("no %s was given", what)
		}
		return nil
	}
}

func atMostOneArg(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("it takes one %s, but %d were given", what, len(args))
		}
		return nil
	}
}

// usageArgs turns complaints about arguments into wrong use. In the hint of a verb that takes
// no arguments, the placeholders REF and TASK become the word that was given.
func usageArgs(check cobra.PositionalArgs, hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		if len(args) > 0 && cmd.HasSubCommands() {
			if line := meantLine(cmd, args[0], args[1:]); line != "" && isPrintable(line) {
				return fault.Usage("unknown command %q", args[0]).WithHint("did you mean `%s`?", line)
			}
		}
		text := hint
		if len(args) == 1 && isPrintable(args[0]) {
			word := shellescape.Quote(args[0])
			text = strings.NewReplacer(" REF", " "+word, " TASK", " "+word).Replace(hint)
		}
		return fault.Usage("%s: %w", cmd.Name(), err).WithHint("%s", text)
	}
}

// afterDash takes one word for what, the placeholder of the usage line ("" = none), then two
// dashes and a command: without the dashes a flag of the command would be read as one of sbx.
func (d *Deps) afterDash(what, example string) cobra.PositionalArgs {
	refs := len(strings.Fields(what))
	return func(cmd *cobra.Command, args []string) error {
		dash := cmd.ArgsLenAtDash()
		var err *fault.Error
		switch {
		case dash < 0 && len(args) > refs:
			err = fault.Usage("%s: put -- before the command", cmd.Name())
			if line := d.dashedLine(cmd); line != "" {
				return err.WithHint("write it like this: `%s`", line)
			}
		case dash > refs:
			err = fault.Usage("%s: too many words before --: %d instead of %d", cmd.Name(), dash, refs)
		case len(args) < refs || (dash >= 0 && dash < refs):
			err = fault.Usage("%s: no %s was given", cmd.Name(), what)
		case len(args) == refs || args[refs] == "":
			err = fault.Usage("%s: no command to run", cmd.Name())
		default:
			return nil
		}
		return err.WithHint("write it like this: `%s`", example)
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

// allBut lists every format but one, for commands that have a text format of their own.
func allBut(one output.FormatName) []output.FormatName {
	return slices.DeleteFunc(output.Formats(), func(f output.FormatName) bool { return f == one })
}
