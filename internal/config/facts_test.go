package config

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
)

// withDocker adds a type that is always there, and two that a file names: containers of
// a remote daemon, and containers of this machine's.
func (w *world) withDocker() Input {
	in := w.input()
	in.Types = slices.Concat([]providers.Type{
		{Name: "swarm", Help: "containers of a cluster", Always: true, Facts: providers.Facts{EndKeeps: providers.EndKeepsNothing}},
		{Name: "docker", Help: "containers of a remote daemon", Facts: providers.Facts{EndKeeps: providers.EndKeepsNothing}},
		{Name: "moby", Help: "containers of this machine", Facts: providers.Facts{HostBound: true, SizedByProfile: true}},
	}, in.Types)
	return in
}

// TestAlwaysSaysNothingElse: a type that needs no configuration is not for that reason
// on this machine, ours, sized by its profile, or where creates go; and one that a file
// names may be all of it.
func TestAlwaysSaysNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "SANDBOX_MEMORY_GB=4")
	w.user("run: {image: agent:1}\nproviders: {box: {type: docker}, near: {type: moby}}\n")
	c, err := Load(t.Context(), w.withDocker())
	require.NoError(t, err)
	run, err := c.Run()
	require.NoError(t, err)
	for name, want := range map[string]struct {
		facts providers.Facts
		owned string
		size  Size
	}{
		"here":  {providers.Facts{HostBound: true, HostProcesses: true, InStateDir: true, SizedByProfile: true, OwnsAll: true, LaunchDefault: true}, "all", run.Here},
		"swarm": {providers.Facts{EndKeeps: providers.EndKeepsNothing}, "sbx/owner=*", run.Remote},
		"box":   {providers.Facts{EndKeeps: providers.EndKeepsNothing}, "sbx/owner=*", run.Remote},
		"near":  {providers.Facts{HostBound: true, SizedByProfile: true}, "sbx/owner=*", run.Here},
	} {
		p, found := c.Find(name)
		require.True(t, found, name)
		assert.Equal(t, want.facts, p.Facts, name)
		assert.Equal(t, want.owned, p.Owned.String(), name)
		assert.Equal(t, want.size, run.Size(p), name)
	}
	assert.NotEqual(t, run.Here, run.Remote)
	assert.Equal(t, "here", c.Launch, "the first type that is always there is another one")
	assert.Equal(t, "swarm <- default", w.origin(c, "providers.swarm.type"))
}

// TestOwnershipIsWritten: a profile owns what sbx made, in a file as by its variable, until `owned` says more; a type
// in which sbx alone makes sandboxes owns all.
func TestOwnershipIsWritten(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file, profile, owned string
		undecided            bool
	}{
		"by its variable":         {"", "cloud", "sbx/owner=*", true},
		"in a file":               {"providers: {prod: {type: cloud, token: one}}\n", "prod", "sbx/owner=*", true},
		"under its type's name":   {"providers: {cloud: {type: cloud}}\n", "cloud", "sbx/owner=*", true},
		"always there":            {"", "swarm", "sbx/owner=*", true},
		"always there, in a file": {"providers: {swarm: {type: swarm}}\n", "swarm", "sbx/owner=*", true},
		"all, in words":           {"providers: {prod: {type: cloud, token: one, owned: all}}\n", "prod", "all", false},
		"by labels":               {"providers: {prod: {type: cloud, token: one, owned: {labels: {team: a}}}}\n", "prod", "team=a", false},
		"what sbx made, in words": {"providers: {prod: {type: cloud, token: one, owned: {labels: {sbx/owner: '*'}}}}\n", "prod", "sbx/owner=*", false},
		"only sbx":                {"", "here", "all", false},
		"only sbx, in a file":     {"providers: {mine: {type: here}}\n", "mine", "all", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, "CLOUD_KEY=s3cret")
			w.user(tc.file)
			c, err := Load(t.Context(), w.withDocker())
			require.NoError(t, err)
			p, found := c.Find(tc.profile)
			require.True(t, found)
			assert.Equal(t, tc.owned, p.Owned.String())
			assert.Equal(t, tc.undecided, p.OwnerUnset())
		})
	}
}

// TestNamingAProfileOwnsNothing: also where it is always there.
func TestNamingAProfileOwnsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flags["provider"] = "swarm"
	c, err := Load(t.Context(), w.withDocker())
	require.NoError(t, err)
	assert.Equal(t, "sbx/owner=* <- default", w.origin(c, "providers.swarm.owned"))
	assert.Equal(t, "all <- default", w.origin(c, "providers.here.owned"))
}
