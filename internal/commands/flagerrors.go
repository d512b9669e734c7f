package commands

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/fault"
	"sbx/internal/output"
)

// familiarFlags are flags of other tools, each with what this one has instead; the first
// that a command has counts.
func familiarFlags() map[string][]string {
	yes := []string{"--yes"}
	older, younger := []string{"--older-than"}, []string{"--younger-than"}
	return map[string][]string{
		"force": yes, "f": yes, "y": yes, "assume-yes": yes, "no-confirm": yes,
		"json": {"-o json"}, "yaml": {"-o yaml"}, "format": {"--output"},
		"age": older, "min-age": older,
		"newer-than": younger, "max-age": younger, "since": younger, "until": {"--before", "--for"}, "last": {"--since"},
		"retries": {"--attempts"}, "retry": {"--attempts"}, "max-retries": {"--attempts"}, "background": {"--detach"}, "async": {"--detach"}, "user": {"--by"},
		"filter": {"--label"}, "selector": {"--label"}, "l": {"--label"},
		"a": {"--all"}, "n": {"--tail", "--limit"}, "lines": {"--tail"}, "follow": {"--watch"},
		"mem": {"--memory"}, "m": {"--memory"}, "max": {"--max-delete"},
		"profile": {"--provider"}, "p": {"--provider"}, "context": {"--provider"}, "namespace": {"--provider"},
		"field-selector": {"--where"}, "sort-by": {"--sort"}, "grace-period": {"--grace"}, "tail": {"--limit"},
		"for": {"--ttl"}, "d": {"--detach"}, "e": {"--env"}, "interval": {"--every"},
	}
}

// surplusFlag is a flag of another tool, or of an earlier version, that a verb does not need.
type surplusFlag struct {
	verb  string   // "" = any
	names []string // of the flag
	value bool     // it takes one
	why   string   // it can be left out
	then  string   // said after the line without it
}

func surplusFlags() []surplusFlag {
	return []surplusFlag{
		{verb: "terminate", names: []string{"force", "f"}, why: "terminate needs no force", then: "; --yes answers its question beforehand"},
		{verb: "run", names: []string{"rm"}, why: "its sandbox is removed when its task ends"},
		{verb: "run", names: []string{"warm"}, value: true, why: "--warm is gone, each task creates its sandbox"},
		{names: []string{"no-stream"}, why: "it prints once and ends"},
		{verb: "diagnose", names: []string{"all"}, why: "without a REF it investigates all sandboxes"},
		{names: []string{"A", "all-namespaces", "all-profiles"}, why: "it covers all profiles"},
		{names: []string{"no-trunc"}, why: "only a terminal's width shortens values"},
	}
}

// leftOut is the hint for a flag that a verb does not need, "" for any other.
func (d *Deps) leftOut(cmd *cobra.Command, typed, name string) string {
	for _, s := range surplusFlags() {
		if (s.verb == "" || s.verb == cmd.Name()) && slices.Contains(s.names, name) {
			return s.why + ": `" + d.lineWith(typed, instead{whole: s.value}) + "`" + s.then
		}
	}
	if name == "dry-run" && allFlags(cmd).Lookup("yes") != nil {
		return "without --yes it does nothing and prints the plan: `" + d.lineWith(typed, instead{}) + "`"
	}
	return ""
}

// explainFlagError replaces pflag's text, which names Go functions, by what to type.
func (d *Deps) explainFlagError(cmd *cobra.Command, err error) error {
	if word, rest := d.unknownWord(cmd); word != "" {
		return unknownCommand(cmd, word, rest)
	}
	if err := d.goneVerbOf(cmd); err != nil {
		return err
	}
	prefix := ""
	if cmd.HasParent() {
		prefix = cmd.Name() + ": "
	}
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return d.unknownFlag(cmd, prefix, missing)
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fault.Usage("%s--%s needs a value", prefix, missing.GetFlag().Name).WithHint("%s", flagLine(missing.GetFlag()))
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok && errors.Is(err, errGivenTwice) {
		return fault.Usage("%s--%s: %w", prefix, bad.GetFlag().Name, errGivenTwice).WithHint("%s", flagLine(bad.GetFlag()))
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fault.Usage("%s--%s: %s", prefix, bad.GetFlag().Name, wrongValue(bad)).WithHint("%s", flagLine(bad.GetFlag()))
	}
	if bad, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return fault.Usage("%s%q is no flag", prefix, bad.GetSpecifiedFlag()).WithHint("`%s --help` lists the flags", cmd.CommandPath())
	}
	return fault.Usage("%s%w", prefix, err).WithHint("`%s --help` lists the flags", cmd.CommandPath())
}

// unknownWord is the verb that the root does not have, and what stands behind it. Its flags
// are those of another verb, so that they are no mistake of their own.
func (d *Deps) unknownWord(cmd *cobra.Command) (word string, rest []string) {
	if cmd.HasParent() || len(d.Process.Args) < 1 {
		return "", nil
	}
	argv := d.Process.Args[1:]
	for _, t := range readTyped(allFlags(cmd), argv) {
		if t.flag {
			continue
		}
		if found, _, err := cmd.Find(t.words); err != nil || found != cmd || t.words[0] == "--" {
			return "", nil
		}
		return t.words[0], behind(argv, t.words[0])
	}
	return "", nil
}

func (d *Deps) unknownFlag(cmd *cobra.Command, prefix string, missing *pflag.NotExistError) error {
	name, typed := missing.GetSpecifiedName(), "--"+missing.GetSpecifiedName()
	if missing.GetSpecifiedShortnames() != "" {
		typed = "-" + name
	}
	err := fault.Usage("%sunknown flag %s", prefix, output.Escape(typed))
	line := d.dashedLine(cmd)
	if strings.Contains(line, " --image ") {
		return err.WithHint("an image stands behind --image, and a command behind two dashes: `%s`", line)
	}
	if hint := d.leftOut(cmd, typed, name); hint != "" {
		return err.WithHint("%s", hint)
	}
	if hint := d.otherVerb(cmd, name); hint != "" {
		return err.WithHint("%s", hint)
	}
	if line != "" {
		return err.WithHint("put -- before the command to run: `%s`", line)
	}
	if meant := d.meantWords(cmd, typed, name); len(meant.words) > 0 {
		if line := d.lineWith(typed, meant); isPrintable(line) && line != d.lineWith("", instead{}) { // one of several letters stays
			return err.WithHint("did you mean `%s`?", line)
		}
	}
	return err.WithHint("`%s --help` lists the flags", cmd.CommandPath())
}

// meantFlag is the flag that a wrong name most likely meant: one of another tool, the one
// that it begins, else the fewest edits away; "" when none is near.
func meantFlag(flags *pflag.FlagSet, name string) string {
	for _, meant := range familiarFlags()[name] {
		if f, _ := typedFlag(flags, strings.Fields(meant)[0]); f != nil {
			return meant
		}
	}
	var known, begun []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		known = append(known, f.Name)
		if strings.HasPrefix(f.Name, name) {
			begun = append(begun, f.Name)
		}
	})
	switch near := fault.Nearest(name, known); {
	case near != "":
		return "--" + near
	case len(begun) == 1 && len(name) > 1:
		return "--" + begun[0]
	}
	return ""
}

// instead are the words for a wrong flag; whole says that they stand for its value, too.
type instead struct {
	words []string
	whole bool
}

// meantWords are what a wrong flag most likely meant, none where nothing is near. A format of another tool may be
// none of this one, or a template, and a filter has a flag of its own for some keys.
func (d *Deps) meantWords(cmd *cobra.Command, typed, name string) instead {
	flags := allFlags(cmd)
	meant := meantFlag(flags, name)
	value, given := d.valueOf(typed)
	state, isState := strings.CutPrefix(strings.Replace(value, "status.phase=", "status=", 1), "status=")
	switch key, one, pair := strings.Cut(value, "="); {
	case !given:
	case meant == "-o json" && isColumnList(value) && cmd.Args(cmd, []string{value}) != nil: // gh's
		return instead{[]string{"-o", "json", "--columns", value}, true}
	case name == "n" && meant == "--limit" && strings.Trim(value, "0123456789") != "": // kubectl's namespace
		meant = "--provider"
	case meant == "--grace" && strings.Trim(value, "0123456789") == "":
		return instead{[]string{meant, value + "s"}, true}
	case meant == "--output" && strings.Contains(value, "{{"):
		return instead{[]string{"-o", "template=" + value}, true}
	case meant == "--output" && !slices.Contains(output.Formats(), output.FormatName(key)):
		return instead{[]string{"-o", "json"}, true}
	case isState && (meant == "--label" || meant == "--where"):
		return instead{[]string{"--state", strings.ToLower(state)}, true}
	case meant == "--label" && pair && flags.Lookup(key) != nil:
		return instead{[]string{"--" + key, one}, true}
	}
	return instead{words: strings.Fields(meant)}
}

// valueOf is the value that was typed for a flag.
func (d *Deps) valueOf(typed string) (value string, given bool) {
	for i, word := range d.Process.Args {
		if text, attached := strings.CutPrefix(word, typed+"="); attached {
			return text, true
		}
		if word == typed && i+1 < len(d.Process.Args) {
			return d.Process.Args[i+1], true
		}
	}
	return "", false
}

// lineWith is the typed command line with other words for one flag; its value stays, unless they stand for it.
func (d *Deps) lineWith(typed string, in instead) string {
	argv := slices.Clone(d.Process.Args)
	argv[0] = "sbx"
	for i, word := range argv {
		value, attached := strings.CutPrefix(word, typed+"=")
		end := i + 1
		switch {
		case i == 0 || (word != typed && !attached):
			continue
		case in.whole && !attached:
			end++
		case attached && !in.whole && len(in.words) == 1:
			in.words = []string{in.words[0] + "=" + value}
		}
		argv = slices.Concat(argv[:i], in.words, argv[end:])
		break
	}
	return shellescape.QuoteCommand(argv)
}

// isColumnList says that a value names columns, as tools take them behind --json.
func isColumnList(value string) bool {
	return value != "" && !strings.ContainsFunc(value, func(r rune) bool { return r != ',' && r != '_' && !unicode.IsLetter(r) })
}

// flagLine is a flag with its placeholder and what it is for.
func flagLine(f *pflag.Flag) string {
	placeholder, usage := pflag.UnquoteUsage(f)
	if placeholder != "" {
		placeholder = " " + placeholder
	}
	return "--" + f.Name + placeholder + ": " + strings.ReplaceAll(usage, "\n", "")
}

// wrongValue says why a flag cannot have a value.
func wrongValue(bad *pflag.InvalidValueError) string {
	value := strconv.Quote(bad.GetValue())
	if errors.Is(bad, strconv.ErrRange) {
		return value + " is too large"
	}
	switch bad.GetFlag().Value.Type() {
	case "bool":
		return "it is a switch and takes no value, but was given " + value
	case "count", "int", "int64":
		return value + " is not a whole number"
	case "float64":
		return value + " is not a number"
	}
	return value + " is not a list of words with commas between them"
}
