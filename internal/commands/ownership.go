package commands

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sbx/internal/config"
	"sbx/internal/cron"
	"sbx/internal/sandbox"
)

// undecided are the selected profiles of which nobody has configured whose the
// sandboxes are: bulk endings touch only those that carry sandbox.LabelOwner.
func undecided(c *config.Config) []string {
	var names []string
	for _, p := range c.Selected() {
		if p.Undecided() {
			names = append(names, p.Name)
		}
	}
	return names
}

// ownHint is what to type so that the sandboxes of these profiles are somebody's.
func (e *Env) ownHint(profiles []string) string {
	return "`" + e.Process.Name() + " config own" + cron.ProviderFlags(profiles) + " --all` makes all of them yours, `--label KEY=VALUE` those that carry it"
}

// unownedText says how many sandboxes stay because nobody owns them, and what to type;
// "" = none.
func (e *Env) unownedText(unowned map[string]int, what string) string {
	names := slices.Sorted(maps.Keys(unowned))
	total := 0
	parts := make([]string, len(names))
	for i, name := range names {
		total += unowned[name]
		parts[i] = fmt.Sprintf("%s %d", name, unowned[name])
	}
	if total == 0 {
		return ""
	}
	if total == 1 {
		return fmt.Sprintf("1 %s is kept because nobody owns it (%s): %s", strings.Replace(what, "sandboxes", "sandbox", 1), names[0], e.ownHint(names))
	}
	return fmt.Sprintf("%d %s are kept because nobody owns them (%s): %s", total, what, strings.Join(parts, ", "), e.ownHint(names))
}

// ownershipChecks say of each undecided profile what cleanup never ends, by its newest
// recorded run; a profile without any such run has a note.
func (d *Deps) ownershipChecks(c *config.Config, runs []cron.Run) []checkRow {
	var rows []checkRow
	runs = slices.DeleteFunc(slices.Clone(runs), func(r cron.Run) bool { return r.Layer != cron.Stuck && r.Layer != cron.Age })
	for _, name := range undecided(c) {
		row := toolCheck("ownership", sandbox.True, "cleanup ends only what has the label "+sandbox.LabelOwner+": this profile switched itself on", d.ownHint([]string{name})).inform()
		if n := cron.Unowned(runs, name); n > 0 {
			row = toolCheck("ownership", sandbox.False, fmt.Sprintf("the last cleanup left %d stuck because nobody owns them", n), d.ownHint([]string{name}))
			row.minor = true
		}
		row.Provider = name
		rows = append(rows, row)
	}
	return rows
}
