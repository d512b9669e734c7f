package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLayersGoFromWeakToStrong(t *testing.T) {
	t.Parallel()
	by := func(name string) entry { return entry{text: name, origin: "origin of " + name} }
	l := newLayers()
	_, ok := l.lookup("limits.x")
	assert.False(t, ok, "nobody set it")

	for _, step := range []struct {
		name string
		set  func()
	}{
		{"default", func() { l.byDefault("limits.x", by("default")) }},
		{"user", func() { require.NoError(t, l.mergeOver(map[string]entry{"limits.x": by("user")})) }},
		{"project", func() { require.NoError(t, l.mergeOver(map[string]entry{"limits.x": by("project")})) }},
		{"env", func() { require.NoError(t, l.mergeOver(map[string]entry{"limits.x": by("env")})) }},
		{"flag", func() { l.byFlag("limits.x", by("flag")) }},
	} {
		step.set()
		got, ok := l.lookup("limits.x")
		assert.True(t, ok)
		assert.Equal(t, by(step.name), got)
	}

	// what is weaker does not come back when it is set later
	l.byDefault("limits.x", by("late default"))
	require.NoError(t, l.mergeOver(map[string]entry{"limits.x": by("late file")}))
	got, _ := l.lookup("limits.x")
	assert.Equal(t, "flag", got.text)
}

func TestLayersDoNotReadDotsAsPaths(t *testing.T) {
	t.Parallel()
	l := newLayers()
	l.byDefault("providers.a", entry{text: "outer"})
	l.byDefault("providers.a.url", entry{text: "inner"})
	l.byFlag("providers", entry{text: "whole"})
	for key, want := range map[string]string{"providers": "whole", "providers.a": "outer", "providers.a.url": "inner"} {
		got, ok := l.lookup(key)
		require.True(t, ok, key)
		assert.Equal(t, want, got.text)
	}
	_, ok := l.lookup("providers.a.url.x")
	assert.False(t, ok)
}

func TestLayersKeepNamedVariables(t *testing.T) {
	t.Parallel()
	l := newLayers()
	require.NoError(t, l.mergeOver(map[string]entry{"k": {text: "secret"}}))
	require.NoError(t, l.mergeOver(map[string]entry{"k": {variable: "VAR"}}))
	got, _ := l.lookup("k")
	assert.Equal(t, entry{variable: "VAR"}, got, "the weaker file's text is gone, not mixed in")
}

func TestEnvironmentOfTheProcessIsNotRead(t *testing.T) {
	t.Setenv("LIMITS.MAX_DELETE", "1")
	t.Setenv("MAX_DELETE", "1")
	t.Setenv("SBX_PROVIDER", "nobody")
	t.Setenv("CLOUD_KEY", "ambient")
	c := newWorld(t).must()
	assert.Equal(t, 20, c.Limits.MaxDelete)
	assert.Equal(t, []string{"here"}, c.profileNames())
}
