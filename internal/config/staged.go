package config

import (
	"slices"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Staged is this configuration for an incident that is played at one profile: that profile alone owns
// what has the labels, everything is judged by these thresholds, a run may end most sandboxes, and
// nobody is notified. What the configuration protects is not staged, so nothing is protected.
func (c *Config) Staged(profile string, labels map[string]string, most int, t triage.Thresholds) *Config {
	staged := *c
	p, _ := c.Find(profile)
	p.Owned, p.Production = Owned{Labels: labels}, false
	staged.Profiles, staged.Sources, staged.Use, staged.named = []Profile{p}, nil, nil, nil
	staged.Production, staged.Protect, staged.Notify = nil, Protect{}, Notify{}
	staged.Limits.MaxDelete, staged.Limits.MaxFraction = most, 100
	staged.Thresholds = triage.ThresholdBook{Default: t}
	staged.values = slices.Clone(c.values)
	for i, v := range staged.values {
		for _, s := range thresholdSettings() {
			if s.kind == providers.OptionDuration && v.Key == (scope{}).settingKey(s.name) {
				staged.values[i].Value = sandbox.FormatExactDuration(*s.of(&t).(*time.Duration)) //nolint:forcetypeassert,errcheck // by its kind
			}
		}
	}
	return &staged
}
