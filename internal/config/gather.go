package config

import "slices"

// guards gathers what files add up to: production and protection; and reads the
// limits.
func (l *loader) guards() {
	c := l.config
	for _, doc := range l.docs {
		for _, w := range doc.production {
			if !slices.Contains(c.Production, w.text) {
				c.Production = append(c.Production, w.text)
			}
		}
		for _, p := range doc.labels {
			if !slices.Contains(c.Protect.Labels, p.value) {
				c.Protect.Labels = append(c.Protect.Labels, p.value)
			}
		}
		for _, p := range doc.ids {
			if !slices.Contains(c.Protect.IDs, p.value) {
				c.Protect.IDs = append(c.Protect.IDs, p.value)
			}
		}
	}
	for i, p := range c.Profiles {
		c.Profiles[i].Production = slices.Contains(c.Production, p.Name)
	}
	c.Limits = l.limits()
}
