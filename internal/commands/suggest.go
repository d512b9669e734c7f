package commands

import (
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/fault"
	"sbx/internal/task"
)

// familiarVerb says what to type instead of a verb that people know from other tools.
type familiarVerb struct {
	verb  string // with a sandbox, or by itself
	task  string // with a task; "" = verb
	alone string // without any argument; "" = verb and needs
	needs string // stands in for a missing argument
	say   string // instead of a line: sbx has nothing of the kind
}

// familiarVerbs are the verbs of other tools, each with the verb of this one. They are never
// run: a word that ends sandboxes elsewhere must not end them here by accident.
func familiarVerbs() map[string]familiarVerb {
	list := familiarVerb{verb: "ls"}
	end := familiarVerb{verb: "terminate", task: "stop", needs: "REF"}
	show := familiarVerb{verb: "inspect", task: "tasks show", needs: "REF"}
	shell := familiarVerb{verb: "exec -it", needs: "REF"}
	clean := familiarVerb{verb: "cleanup"}
	launch := familiarVerb{verb: "create", needs: "-- COMMAND"}
	follow := familiarVerb{verb: "logs -f", needs: "REF"}
	cancel := familiarVerb{verb: "terminate", task: "stop", alone: "stop TASK"}
	setup := familiarVerb{verb: "doctor"}
	board := familiarVerb{verb: "dashboard"}
	keep := familiarVerb{verb: "keep", needs: "REF"}
	unkeep := familiarVerb{verb: "keep --off", needs: "REF"}
	diagnosis := familiarVerb{verb: "diagnose"}
	compare := familiarVerb{verb: "events compare", needs: "A.jsonl B.jsonl"}
	pause := familiarVerb{say: "sbx pauses nothing: `sbx terminate REF` ends one and keeps what its provider can keep, `sbx keep REF` protects it from cleanups"}
	extend := familiarVerb{verb: "extend", needs: "REF --ttl 1h"}
	snapshot := familiarVerb{say: "sbx makes no snapshots; `sbx create --snapshot NAME -- COMMAND` starts from one"}
	update := familiarVerb{say: "sbx is updated as it was installed; `sbx version` says which one this is"}
	login := familiarVerb{say: "keys come from the environment or the configuration: `sbx config init --type TYPE` writes a profile, `sbx doctor` tests it"}
	restart := familiarVerb{say: "nothing is restarted: `sbx terminate REF`, then `sbx create` makes a new one; `sbx run` tries a task again by itself"}
	return map[string]familiarVerb{
		"ps": list, "sandboxes": list, "pods": list, "containers": list,
		"rm": end, "kill": end, "delete": end, "remove": end, "destroy": end, "end": end,
		"show": show, "describe": show,
		"get":    {verb: "inspect", task: "tasks show", alone: "ls"},
		"info":   {verb: "inspect", task: "tasks show", alone: "doctor"},
		"status": {verb: "inspect", task: "tasks show", alone: "stats"},
		"attach": shell, "connect": shell, "ssh": shell, "sh": shell, "bash": shell,
		"prune": clean, "clean": clean, "gc": clean,
		"start": launch, "launch": launch, "new": launch, "spawn": launch,
		"tail": follow, "follow": follow,
		"cancel": cancel, "abort": cancel,
		"usage": {verb: "top"}, "metrics": {verb: "top"}, "history": {verb: "audit"},
		"check": setup, "health": setup, "whoami": setup, "auth": login, "login": login,
		"init":  {verb: "config init"},
		"pause": pause, "unpause": pause, "suspend": pause, "freeze": pause, "hibernate": pause,
		"renew": extend, "prolong": extend, "snapshot": snapshot, "checkpoint": snapshot, "commit": snapshot,
		"update": update, "upgrade": update, "self-update": update, "restart": restart, "reboot": restart,
		"protect": keep, "pin": keep, "cordon": keep, "unkeep": unkeep, "unprotect": unkeep, "unpin": unkeep, "uncordon": unkeep,
		"debug": diagnosis, "why": diagnosis, "explain": diagnosis, "quota": setup, "quotas": setup, "compare": compare, "diff": compare,
		"ui": board, "watch": board, "monitor": board,
		"apply": {verb: "run --file", alone: "run --file FILE"},
		"runs":  {verb: "tasks"}, "jobs": {verb: "tasks"},
		"contexts": {verb: "providers"}, "profiles": {verb: "providers"},
	}
}

// familiarNouns stand before a verb elsewhere: `docker container ls`.
func familiarNouns() []string {
	return []string{"sandbox", "sandboxes", "container", "containers", "pod", "pods", "system"}
}

// typedWord is one word of a command line, with the value that belongs to a flag.
type typedWord struct {
	words []string
	flag  bool // one that is written as a flag
	known bool // and that the command has
}

// readTyped takes a command line apart by the flags that a command has. An unknown flag takes
// no value; behind -- nothing is a flag.
func readTyped(flags *pflag.FlagSet, args []string) []typedWord {
	var out []typedWord
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "--" {
			for _, rest := range args[i:] {
				out = append(out, typedWord{words: []string{rest}})
			}
			break
		}
		if len(word) < 2 || word[0] != '-' {
			out = append(out, typedWord{words: []string{word}})
			continue
		}
		f, attached := typedFlag(flags, word)
		t := typedWord{words: args[i : i+1], flag: true, known: f != nil}
		if f != nil && !attached && f.NoOptDefVal == "" && i+1 < len(args) {
			i++
			t.words = args[i-1 : i+1]
		}
		out = append(out, t)
	}
	return out
}

// typedFlag finds the flag of a word such as --limit=5, -it or -ojson, and whether the word
// holds its value too.
func typedFlag(flags *pflag.FlagSet, word string) (f *pflag.Flag, attached bool) {
	if long, ok := strings.CutPrefix(word, "--"); ok {
		name, _, attached := strings.Cut(long, "=")
		return flags.Lookup(name), attached
	}
	for i := 1; i < len(word); i++ {
		f = flags.ShorthandLookup(word[i : i+1])
		if f == nil || f.NoOptDefVal == "" {
			return f, i+1 < len(word)
		}
	}
	return f, false
}

// allFlags are a command's own flags and those that it inherits.
func allFlags(cmd *cobra.Command) *pflag.FlagSet {
	f := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	f.AddFlagSet(cmd.Flags())
	f.AddFlagSet(cmd.InheritedFlags())
	return f
}

// unknownVerb refuses a word that is no command, with the whole line that was probably meant.
func unknownVerb(d *Deps) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownCommand(cmd, args[0], behind(d.Process.Args, args[0]))
	}
}

// behind gives the words of argv after the first that is word.
func behind(argv []string, word string) []string {
	if i := slices.Index(argv, word); i >= 0 {
		return argv[i+1:]
	}
	return nil
}

func unknownCommand(cmd *cobra.Command, word string, rest []string) error {
	err := fault.Usage("unknown command %q", word)
	if say := sayInstead(cmd, word, rest); say != "" {
		return err.WithHint("%s", say)
	}
	if line := meantLine(cmd, word, rest); line != "" && isPrintable(line) {
		return err.WithHint("did you mean `%s`?", line)
	}
	return err.WithHint("`%s --help` lists the commands", cmd.CommandPath())
}

// sayInstead is what to know where sbx has nothing of the kind; "" where it has.
func sayInstead(cmd *cobra.Command, word string, rest []string) string {
	switch {
	case cmd.Name() == "config" && slices.Contains([]string{"set", "unset"}, word):
		return "settings are edited in a file: `sbx config path` prints where it is, `sbx config explain` what is in force"
	case cmd.HasParent():
		return ""
	case len(rest) > 0 && slices.Contains(append(familiarNouns(), otherTools()...), word):
		return sayInstead(cmd, rest[0], rest[1:])
	}
	return familiarVerbs()[word].say
}

// meantLine is the whole command line that an unknown verb and its arguments most likely
// meant, "" where nothing is near.
func meantLine(cmd *cobra.Command, word string, rest []string) string {
	if !cmd.HasParent() {
		if line := familiarLine(cmd, word, rest); line != "" {
			return line
		}
	}
	if cmd.Name() == "tasks" {
		if verb, _, err := cmd.Root().Find([]string{word}); err == nil && strings.Contains(verb.Use, "TASK") { // sbx tasks stop t-x
			return lineOf(cmd.Root(), word, rest)
		}
	}
	if near := nearVerb(cmd, word); near != "" {
		if sub, _, err := cmd.Find(append([]string{near}, rest[:min(1, len(rest))]...)); err == nil && sub.Parent() != cmd && len(rest) > 0 { // task show t-x
			return lineOf(cmd, near+" "+rest[0], rest[1:])
		}
		return lineOf(cmd, near, rest)
	}
	if cmd.HasParent() { // sbx tasks rm t-x
		for _, t := range readTyped(allFlags(cmd), rest) {
			if !t.flag && isTaskID(t.words[0]) {
				return familiarLine(cmd.Root(), word, rest)
			}
		}
	}
	return ""
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
	const least = 3 // two letters begin too many
	if begun := cmd.SuggestionsFor(word); len(begun) > 0 && len(word) >= least {
		return begun[0]
	}
	return ""
}

// helpTopic is the page that a wrong word behind help most likely meant, "" where none is near.
func helpTopic(cmd *cobra.Command, word string) string {
	if v, ok := familiarVerbs()[word]; ok && !cmd.HasParent() && v.say == "" {
		return strings.Fields(v.verb)[0]
	}
	if word == "stuck" {
		return "glossary"
	}
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	if near := fault.Nearest(word, names); near != "" {
		return near
	}
	if i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, word) }); i >= 0 {
		return names[i]
	}
	return ""
}

// lineOf writes a command with the arguments that it takes and those of the flags that it has.
func lineOf(parent *cobra.Command, verb string, rest []string) string {
	words := append(strings.Fields(parent.CommandPath()), strings.Fields(verb)...)
	target, _, err := parent.Find(strings.Fields(verb))
	if err != nil {
		return shellescape.QuoteCommand(words)
	}
	flags := allFlags(target)
	typed := readTyped(flags, rest)
	bare := takesNoArguments(target, typed)
	for _, t := range typed {
		switch {
		case bare && !t.flag:
		case !t.flag || t.known:
			words = append(words, t.words...)
		case t.words[0] == "-a" && flags.Lookup("all") != nil: // of ps, as in docker ps -a
			words = append(words, "--all")
		}
	}
	return shellescape.QuoteCommand(words)
}

// takesNoArguments says that a command refuses the arguments that were typed, and needs none: those
// of `ps aux` name no sandbox.
func takesNoArguments(target *cobra.Command, typed []typedWord) bool {
	var words []string
	for _, t := range typed {
		if !t.flag {
			words = append(words, t.words...)
		}
	}
	return target.Args != nil && target.Args(target, words) != nil && target.Args(target, nil) == nil
}

// familiarLine is the line for a verb of another tool, "" for a word that is none.
func familiarLine(root *cobra.Command, word string, rest []string) string {
	if word == "cp" {
		return copyLine(root, rest)
	}
	if len(rest) > 0 && slices.Contains(append(familiarNouns(), otherTools()...), word) {
		if found, _, err := root.Find(rest[:1]); err == nil && found != root {
			if words := imageLine(found, readTyped(allFlags(found), rest[1:])); words != nil { // docker run -d ubuntu sleep 5
				return shellescape.QuoteCommand(append([]string{root.Name(), rest[0]}, words...))
			}
			return lineOf(root, rest[0], rest[1:])
		}
		return familiarLine(root, rest[0], rest[1:])
	}
	v, ok := familiarVerbs()[word]
	if !ok || v.say != "" {
		return ""
	}
	rest = withoutNoun(rest)
	first := firstArgument(root, v.verb, rest)
	switch {
	case v.verb == "exec -it":
		return shellLine(root, first, rest)
	case (first == "" || familiarVerbs()[first].verb == "ls") && v.alone != "": // get sandboxes
		return root.Name() + " " + v.alone
	case isTaskID(first) && v.task != "":
		return lineOf(root, v.task, rest)
	case first == "" && v.needs != "":
		return lineOf(root, v.verb, rest) + " " + v.needs
	}
	return lineOf(root, v.verb, rest)
}

func firstArgument(root *cobra.Command, verb string, rest []string) string {
	target, _, err := root.Find(strings.Fields(verb))
	if err != nil {
		return ""
	}
	for _, t := range readTyped(allFlags(target), rest) {
		if !t.flag && t.words[0] != "--" {
			return t.words[0]
		}
	}
	return ""
}

// dashedLine is the typed command line with the two dashes that are missing before the command
// to run, "" where they are not missing. An image in front of the command, as of docker, goes behind --image.
func (d *Deps) dashedLine(cmd *cobra.Command) string {
	before, _, takes := strings.Cut(cmd.Use, " -- ")
	argv := d.Process.Args
	if !takes || slices.Contains(argv, "--") {
		return ""
	}
	words := strings.Fields(cmd.CommandPath())
	left := strings.Count(before, "REF") + strings.Count(before, "TASK")
	typed := readTyped(allFlags(cmd), behind(argv, cmd.Name()))
	if image := imageLine(cmd, typed); image != nil {
		words, typed, left = append(words, image...), nil, -1
	}
	for _, t := range typed {
		if !t.flag {
			if left == 0 {
				words = append(words, "--")
			}
			left--
		}
		words = append(words, t.words...)
	}
	if line := shellescape.QuoteCommand(words); left < 0 && isPrintable(line) {
		return line
	}
	return ""
}

// isTaskID tells a task from a sandbox by its spelling.
func isTaskID(word string) bool { return task.IsID(word) && !strings.Contains(word, "/") }
