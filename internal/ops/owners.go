package ops

import (
	"strings"

	"sbx/internal/config"
	"sbx/internal/cron"
)

// WithoutOwner are the selected profiles without a configured owner: bulk endings touch only their
// sandboxes that carry sandbox.LabelOwner.
func WithoutOwner(c *config.Config) []string {
	var names []string
	for _, p := range c.Selected() {
		if p.OwnerUnset() {
			names = append(names, p.Name)
		}
	}
	return names
}

// OwnHint says what to write so that all sandboxes of these profiles, or those with a label, are ours: two
// lines to choose from, or the first alone where a provider keeps no labels.
func (e *Env) OwnHint(profiles []string) string {
	var labelled, unlabelled []string
	for _, name := range profiles {
		if e.keepsNoLabels(name) {
			unlabelled = append(unlabelled, name)
		} else {
			labelled = append(labelled, name)
		}
	}
	var hints []string
	for _, choice := range []struct {
		profiles []string
		or       string
	}{
		{labelled, ", --label KEY=VALUE `owned: {labels: {KEY: VALUE}}` (those with the label)"},
		{unlabelled, ""},
	} {
		if len(choice.profiles) > 0 {
			hints = append(
				hints,
				"`"+e.Process.Name()+" config own"+cron.ProviderFlags(choice.profiles)+" --all` writes `owned: all` (every sandbox there is yours)"+choice.or,
			)
		}
	}
	return strings.Join(hints, "; ")
}

// keepsNoLabels reports whether no label can name an owner at a profile.
func (e *Env) keepsNoLabels(profile string) bool {
	c, err := e.Config()
	if err != nil {
		return false
	}
	p, known := c.Find(profile)
	return known && e.TypeOf(p).NoLabels
}
