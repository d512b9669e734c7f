package commands

import (
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/sandbox"
)

// otherTools are programs whose name is typed in front of their verb.
func otherTools() []string {
	return []string{"docker", "podman", "nerdctl", "kubectl", "k", "e2b", "daytona", "novita", "vercel", "modal", "gh", "aws"}
}

// withoutNoun are the words behind a verb without the kind of thing that other tools want there: `delete pod X`.
func withoutNoun(rest []string) []string {
	if len(rest) > 1 && slices.Contains(append(familiarNouns(), "task"), rest[0]) && !strings.HasPrefix(rest[1], "-") {
		return rest[1:]
	}
	return rest
}

// otherVerb is the hint for a flag whose purpose another verb or flag has, "" for any other flag.
func (d *Deps) otherVerb(cmd *cobra.Command, flag string) string {
	value, _ := d.valueOf("-" + flag)
	switch verb := cmd.Name(); verb + " --" + flag {
	case "create --f", "create --file":
		return "a file of tasks is launched by `sbx run --file FILE`"
	case "terminate --all":
		return "a rule selects many: `sbx cleanup --older-than 10m` prints a plan"
	case "cleanup --all":
		return "it covers all profiles, and a rule selects: `sbx cleanup --older-than 10m` prints a plan"
	case "stop --all":
		return "read them from a pipe: `sbx tasks --state running -o name | sbx stop -`"
	case "logs --t", "logs --timestamps":
		return "a table has times: `sbx logs REF -o table`"
	case "logs --p":
		return "of the program before its last start: `sbx logs REF --previous`"
	case "create --p", "run --p", "create --publish", "run --publish-all":
		if strings.Trim(value, "0123456789:.") == "" {
			return "sbx publishes no ports: `sbx exec REF -- curl localhost:PORT` reaches one from inside"
		}
	case "ls --l", "ls --la", "ls --al":
		if !strings.Contains(value, "=") {
			return "`sbx ls -o wide` has more columns, --all also lists ended ones, --label K=V selects"
		}
	case "dashboard --json":
		return "one frame is a document: `sbx dashboard --once -o json`"
	}
	selectors := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(selectorFlags).addSelectingFlags(selectors)
	if cmd.Name() == "terminate" && selectors.Lookup(flag) != nil {
		line := append([]string{"sbx", "cleanup"}, behind(d.Process.Args, "terminate")...)
		return "a rule selects many: `" + shellescape.QuoteCommand(line) + "` prints a plan"
	}
	return ""
}

// ageForWord is the hint for an age that was typed as a word, "" for any other word.
func (d *Deps) ageForWord(cmd *cobra.Command, word string) string {
	if _, err := sandbox.ParseDuration(word); err != nil {
		return ""
	}
	switch flags := allFlags(cmd); {
	case flags.Changed("watch"):
		return "--watch is a switch: `" + d.lineWith(word, instead{}) + "`"
	case flags.Lookup("older-than") != nil:
		return "did you mean `" + d.lineWith(word, instead{words: []string{"--older-than", word}}) + "`?"
	}
	return ""
}
