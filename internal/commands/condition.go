package commands

import (
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/selector"
	"sbx/internal/views"
)

// completeCondition completes the last word of a condition by a name, with its meaning.
func completeCondition(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before, word := typed, ""
	if at := strings.LastIndexAny(typed, " (!"); at >= 0 || len(strings.Fields(typed)) == 1 {
		before, word = typed[:at+1], typed[at+1:]
	}
	var offers []string
	for _, n := range selector.ConditionNames() {
		if strings.HasPrefix(n.Name, word) {
			offers = append(offers, before+n.Name+"\t"+n.Meaning)
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

const conditionsHelp = "A condition chooses sandboxes by their figures. ls and cleanup take it:\n\n" +
	"  `sbx ls --where 'age_seconds > 1h and cpu_percent < 1%'`\n" +
	"  `sbx ls --where 'state in [\"running\", \"paused\"] and labels.team == \"a\"'`\n" +
	"  `sbx ls --where 'usage.memory_mb > 90% * memory_limit_mb'`\n" +
	"  `sbx cleanup --where 'usage.memory_mb > 1G and pattern == \"leak\"'`\n" + `
  and or not ( )       also && || !
  == != < <= > >=      texts and true or false have only == and !=
  in, not in           state in ["running", "paused"], "keep" in labels
  contains startsWith endsWith
  matches              a regular expression (RE2): name matches "^ci-[0-9]+$"
  + - * /  len(X)      with numbers; the length of a text
  NAME == nil          the value is not reported; != nil: it is

  10m, 1h30m, 2d       durations, with names in seconds
  512M, 2G             sizes (1024-based), with names in MiB
  5%                   with percentages, and with ratios (0.05)
  "text", 'text'       "2026-11-22T12:00Z" with times

A bare number has the unit of its name. A wrong name or unit is refused, with its
place. A value that is not reported makes its comparison unknown, never 0, false
or empty; not unknown is unknown. What is unknown is not selected, and is counted
and said. Names with * need a look at the sandbox itself: the verb then looks at
the running ones that their records leave open.

`

// conditionsPage explains conditions and lists the names that they use.
func conditionsPage() string {
	var b strings.Builder
	b.WriteString(conditionsHelp)
	listed := map[string]bool{}
	for _, n := range selector.ConditionNames() {
		key, kind := n.Name, string(n.Kind)
		if n.Look {
			key += "*"
		}
		if n.Unit != "" {
			kind = string(n.Unit)
		}
		about := kind + ": " + n.Meaning
		if words := strings.Join(n.Words, ", "); words != "" && !listed[words] {
			about += " (" + words + ")"
			listed[words] = true
		}
		b.WriteString(views.Definition(key, about, 27))
	}
	return b.String()
}
