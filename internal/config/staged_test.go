package config

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

func TestAStagedConfigurationIsThatOfOneProfile(t *testing.T) {
	t.Parallel()
	c := &Config{
		Profiles:   []Profile{{Profile: providers.Profile{Name: "local"}, Production: true}, {Profile: providers.Profile{Name: "prod"}}},
		Use:        []string{"prod"},
		Production: []string{"local", "prod"},
		Protect:    Protect{IDs: []sandbox.Ref{{ID: "x"}}},
		values:     []Value{{Key: "thresholds.stuck_age", Value: "10m"}, {Key: "thresholds.active", Value: "20"}},
	}
	limits := triage.DefaultThresholds()
	limits.StuckAge = 2500 * time.Millisecond
	s := c.Staged("local", map[string]string{"run": "1"}, 3, limits)
	require.Len(t, s.Selected(), 1)
	p := s.Selected()[0]
	assert.Equal(t, "local", p.Name)
	assert.True(t, p.Owned.Owns(map[string]string{"run": "1"}))
	assert.False(t, p.Owned.Owns(map[string]string{"run": "2"}))
	assert.False(t, p.Production)
	assert.Empty(t, s.Production)
	assert.False(t, s.Protect.Covers(sandbox.Sandbox{ID: "x"}))
	assert.Equal(t, 3, s.Limits.MaxDelete)
	assert.Equal(t, limits.StuckAge, s.Thresholds.For(sandbox.Sandbox{Provider: "local"}).StuckAge)
	assert.True(t, slices.ContainsFunc(s.Values(), func(v Value) bool { return v.Key == "thresholds.stuck_age" && v.Value == "2.5s" }), "texts of runbooks say it, too")
	assert.True(t, slices.ContainsFunc(s.Values(), func(v Value) bool { return v.Key == "thresholds.active" && v.Value == "20" }))
	assert.Len(t, c.Profiles, 2, "the configuration itself is as it was")
	assert.Equal(t, "10m", c.Values()[0].Value)
}
