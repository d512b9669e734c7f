package ops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sbx/internal/cleanup"
	"sbx/internal/config"
	"sbx/internal/cron"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// lastRun stands for the newest bulk run.
const lastRun = "last"

// minRunPrefix is how much of a run's name must be given: less is hardly meant.
const minRunPrefix = 4

func meansRun(word, run string) bool {
	return word == lastRun || word == run || len(word) >= minRunPrefix && strings.HasPrefix(run, word)
}

// fewOf names some of many.
func fewOf(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// splitByQuota parts profiles by whether it can be known how much of a quota they use.
func (e *Env) splitByQuota(profiles []config.Profile) (known, unknown []string) {
	for _, p := range profiles {
		if e.TypeOf(p).TellsQuota || p.MaxSandboxes > 0 {
			known = append(known, p.Name)
		} else {
			unknown = append(unknown, p.Name)
		}
	}
	return known, unknown
}

// TypeOf is the type of a profile.
func (e *Env) TypeOf(p config.Profile) providers.Type { return e.typeNamed(p.Type) }

func (e *Env) typeNamed(name string) providers.Type {
	i := slices.IndexFunc(e.Types, func(t providers.Type) bool { return t.Name == name })
	if i < 0 {
		return providers.Type{}
	}
	return e.Types[i]
}

// ProfileFacts are those of a profile's type; none where it is not configured.
func (e *Env) ProfileFacts(name string) providers.Facts {
	c, err := e.Config()
	if err != nil {
		return providers.Facts{}
	}
	p, _ := c.Find(name)
	return p.Facts
}

// HidesEnded is selector.Facts.HidesEnded.
func (e *Env) HidesEnded(s sandbox.Sandbox) bool { return e.typeNamed(s.ProviderType).HidesEnded }

// sameRule compares rules as the journal keeps them.
func sameRule(a, b cleanup.Rule) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Undecided are the selected profiles of which nobody has configured whose the
// sandboxes are: bulk endings touch only those that carry sandbox.LabelOwner.
func Undecided(c *config.Config) []string {
	var names []string
	for _, p := range c.Selected() {
		if p.Undecided() {
			names = append(names, p.Name)
		}
	}
	return names
}

// OwnHint is what to type so that the sandboxes of these profiles are somebody's.
func (e *Env) OwnHint(profiles []string) string {
	return "`" + e.Process.Name() + " config own" + cron.ProviderFlags(profiles) + " --all` makes all of them yours, `--label KEY=VALUE` those that carry it"
}

// UnownedText says how many sandboxes stay because nobody owns them, and what to type;
// "" = none.
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

// hintMaxSandboxes is what stands in for a quota.
const hintMaxSandboxes = "set limits.max_sandboxes, or max_sandboxes in the profile: what runs is then counted against it"

// ProductionNames are the names of the production profiles; none where the configuration cannot be read.
func (e *Env) ProductionNames() []string {
	c, err := e.Config()
	if err != nil {
		return nil
	}
	return c.Production
}
