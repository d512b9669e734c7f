package config

import (
	"encoding/json"
	"slices"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// withCommon adds what the profile of any provider may say beside the options of
// its type. A type that has one of them already gives it a default of its own.
func withCommon(types []providers.Type) []providers.Type {
	all := make([]providers.Type, 0, len(types))
	for _, t := range types {
		if t.Attach == nil {
			t.Options = slices.Clone(t.Options)
			for _, o := range providers.CommonOptions() {
				if !slices.ContainsFunc(t.Options, func(own providers.Option) bool { return own.Name == o.Name }) {
					t.Options = append(t.Options, o)
				}
			}
		}
		all = append(all, t)
	}
	return all
}

// AgeOnly says that a sandbox of this profile whose activity is not known is
// judged by its age.
func (p Profile) AgeOnly() bool {
	return p.Settings[providers.OptionActivity] == providers.ActivityAgeOnly
}

// maxSandboxes is how many may run at once: by the profile, else by the limits of all.
func (p Profile) maxSandboxes(all Limits) int {
	if n, err := parseCount(p.Settings[providers.OptionMaxSandboxes]); err == nil {
		return int(n)
	}
	return all.MaxSandboxes
}

// StuckAfter gives the ages from which a silent sandbox counts as stuck, by agent
// type; the type "" is all others. Nil where the profile says nothing.
func (p Profile) StuckAfter() map[string]time.Duration {
	var texts map[string]string
	if json.Unmarshal([]byte(p.Settings[providers.OptionStuckAfter]), &texts) != nil {
		return nil
	}
	ages := make(map[string]time.Duration, len(texts))
	for kind, text := range texts {
		age, err := sandbox.ParseDuration(text)
		if err != nil {
			continue // it was checked as it was read
		}
		if kind == providers.OptionDefault {
			kind = ""
		}
		ages[kind] = age
	}
	return ages
}
