package config

import (
	"slices"

	"sbx/internal/sandbox"
)

// collectGuards gathers what files add up to: production and protection; and reads the
// limits.
func (l *loader) collectGuards() {
	c := l.config
	production, labels, ids := distinct[string]{}, distinct[Label]{}, distinct[sandbox.Ref]{}
	for _, doc := range l.docs {
		for _, w := range doc.production {
			production.add(w.text)
		}
		for _, p := range doc.labels {
			labels.add(p.value)
		}
		for _, p := range doc.ids {
			ids.add(p.value)
		}
	}
	c.Production, c.Protect.Labels, c.Protect.IDs = production.list, labels.list, ids.list
	for i, p := range c.Profiles {
		c.Profiles[i].Production = slices.Contains(c.Production, p.Name)
	}
	c.Limits = l.resolvedLimits()
	for i, p := range c.Profiles {
		c.Profiles[i].MaxSandboxes = p.maxSandboxes(c.Limits)
	}
}
