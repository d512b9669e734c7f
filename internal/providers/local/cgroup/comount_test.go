package cgroup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

// Controllers that share a hierarchy share one directory, joined and removed
// once, whatever their order.
func TestControllersThatShareAHierarchy(t *testing.T) {
	t.Parallel()
	for _, mounted := range []string{"memory,pids,cpu,cpuacct,freezer", "freezer,cpuacct,cpu,pids,memory"} {
		k := newKernel(t)
		k.mountV1(mounted)
		g, err := Create(k.host(), "a1", full())
		require.NoError(t, err)
		require.Len(t, g.Paths(), 1)
		assert.ElementsMatch(t, []string{"memory", "freezer", "pids", "cpuacct", "cpu"}, g.State().Dirs[0].Controllers)
		assert.Empty(t, g.Missing())
		require.NoError(t, g.Remove())
		assert.Equal(t, "rmdir "+mounted+"/sbx/a1", k.log[len(k.log)-1])
	}
}

// A limit that no hierarchy can enforce is reported, in every layout.
func TestLimitsWithoutAController(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*kernel){
		"unified": unified,
		"hybrid":  hybrid,
		"legacy":  func(k *kernel) { k.mountV1("memory") },
		"not writable": func(k *kernel) {
			k.mountV1("memory")
			k.mountV1("pids")
			k.mountV1("cpu")
			k.denied["pids"], k.denied["cpu"] = true, true
		},
	} {
		k := newKernel(t)
		build(k)
		g, err := Create(k.host(), "a1", full())
		require.NoError(t, err, name)
		assert.NotEqual(t, sandbox.EnforcementNone, g.Enforcement(), name)
		var missing []string
		for _, m := range g.Missing() {
			missing = append(missing, m.Limit)
		}
		assert.ElementsMatch(t, []string{"pids", "cpu"}, missing, name)
		free, err := Create(k.host(), "a2", Limits{})
		require.NoError(t, err, name)
		assert.Empty(t, free.Missing(), "%s: what was not asked for is not missed", name)
	}
}

// An id holds no dot, so a directory's name falls into owner and id in one way.
func TestNamesAreUnambiguous(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"", "me", "a-b"} {
		for _, id := range []string{"a1", "x_y", "z-9"} {
			gotOwner, gotID := splitName(Host{owner: owner}.dirName(id))
			assert.Equal(t, owner, gotOwner)
			assert.Equal(t, id, gotID)
			require.NoError(t, Dir{Path: "/c/sbx/" + Host{owner: owner}.dirName(id)}.checkPath(id))
		}
	}
}
