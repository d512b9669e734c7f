package ops

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sbx/internal/config"
	"sbx/internal/cron"
)

// Undecided are the selected profiles without a configured owner: bulk endings touch only their
// sandboxes that carry sandbox.LabelOwner.
func Undecided(c *config.Config) []string {
	var names []string
	for _, p := range c.Selected() {
		if p.Undecided() {
			names = append(names, p.Name)
		}
	}
	return names
}

// OwnHint is the command that declares the sandboxes of these profiles as ours.
func (e *Env) OwnHint(profiles []string) string {
	return "`" + e.Process.Name() + " config own" + cron.ProviderFlags(profiles) + " --all` makes all of them yours, `--label KEY=VALUE` those that carry it"
}

// UnownedText says how many sandboxes stay because they have no owner, and what to type; "" =
// none.
func (e *Env) UnownedText(unowned map[string]int, what string) string {
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
		return fmt.Sprintf("1 %s is kept because nobody owns it (%s): %s", strings.Replace(what, "sandboxes", "sandbox", 1), names[0], e.OwnHint(names))
	}
	return fmt.Sprintf("%d %s are kept because nobody owns them (%s): %s", total, what, strings.Join(parts, ", "), e.OwnHint(names))
}
