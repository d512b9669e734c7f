package config

import (
	"slices"

	"sbx/internal/providers"
)

// separateSources takes the profiles of sources out of those of providers: verbs work on
// sandboxes, which a source neither lists nor ends.
func (l *loader) separateSources() {
	var own []Profile
	for _, p := range l.config.Profiles {
		if t, _ := findType(l.in.Types, p.Type); t.Attach != nil {
			l.config.Sources = append(l.config.Sources, p)
			continue
		}
		own = append(own, p)
	}
	l.config.Profiles = own
}

// checkSourceTargets checks that each source belongs to a profile. One that only its
// environment switches on may be missing in this run.
func (l *loader) checkSourceTargets() {
	known := l.config.profileNames()
	for _, s := range l.config.Sources {
		target := s.Settings[providers.OptionAttach]
		if slices.Contains(known, target) || slices.Contains(l.switchableTypes(), target) {
			continue
		}
		e, _ := l.layers.lookup(optionKey(s.Name, providers.OptionAttach))
		l.addError("%s: %s is attached to %s, and there is no such profile%s", e.origin, s.Name, quoteKey(target), suggestAllowed(target, known))
	}
}

// SourcesOf gives the sources that know more of a profile's sandboxes.
func (c *Config) SourcesOf(profile string) []Profile {
	var found []Profile
	for _, s := range c.Sources {
		if s.Settings[providers.OptionAttach] == profile {
			found = append(found, s)
		}
	}
	return found
}

// Loose gives the sources whose profile is not there in this run.
func (c *Config) Loose() []Profile {
	var found []Profile
	for _, s := range c.Sources {
		if _, ok := c.Find(s.Settings[providers.OptionAttach]); !ok {
			found = append(found, s)
		}
	}
	return found
}
