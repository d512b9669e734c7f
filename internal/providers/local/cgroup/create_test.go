package cgroup

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func full() Limits { return Limits{MemoryBytes: 64 << 20, PIDs: 32, CPU: 1.5} }

// inLeafOf is an ordinary user's process in a leaf of the group dir, which
// hands memory down; both were given to the user, the top was not.
func inLeafOf(dir string) func(k *kernel) {
	return func(k *kernel) {
		k.mountV2("/"+dir+"/leaf", "memory", false)
		k.given["v2/"+dir], k.given["v2/"+dir+"/leaf"] = true, true
		k.put("v2/"+dir+"/cgroup.controllers", "memory")
		k.put("v2/"+dir+"/cgroup.subtree_control", "memory")
		k.denied["v2"] = true
	}
}

func TestCreateWritesInOrder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		build       func(k *kernel)
		limits      Limits
		enforcement sandbox.Enforcement
		log         []string
		missing     []string
	}{
		"unified as root": {
			build: func(k *kernel) { k.mountV2("/", "cpu memory pids", false) }, limits: full(), enforcement: sandbox.EnforcementCgroup2,
			log: []string{
				"write v2/cgroup.subtree_control +memory", "write v2/cgroup.subtree_control +pids", "write v2/cgroup.subtree_control +cpu",
				"mkdir v2/sbx",
				"write v2/sbx/cgroup.subtree_control +memory", "write v2/sbx/cgroup.subtree_control +pids", "write v2/sbx/cgroup.subtree_control +cpu",
				"mkdir v2/sbx/a1",
				"write v2/sbx/a1/memory.max 67108864", "write v2/sbx/a1/memory.swap.max 0", "write v2/sbx/a1/memory.oom.group 0",
				"write v2/sbx/a1/pids.max 32", "write v2/sbx/a1/cpu.max 150000 100000",
			},
		},
		"unified in a container that hands memory down": {
			build: func(k *kernel) {
				k.mountV2("/init", "memory", true)
				k.put("v2/cgroup.subtree_control", "memory")
			},
			limits: full(), enforcement: sandbox.EnforcementCgroup2,
			log: []string{
				"mkdir v2/sbx", "write v2/sbx/cgroup.subtree_control +memory", "mkdir v2/sbx/a1",
				"write v2/sbx/a1/memory.max 67108864", "write v2/sbx/a1/memory.swap.max 0", "write v2/sbx/a1/memory.oom.group 0",
			},
			missing: []string{"pids", "cpu"},
		},
		"unified below the own, delegated group": {
			build: func(k *kernel) {
				k.mountV2("/user/me", "memory", true)
				k.given["v2/user/me"] = true
				k.put("v2/user/me/cgroup.controllers", "memory")
				k.put("v2/user/me/cgroup.subtree_control", "memory")
			},
			limits: Limits{MemoryBytes: 1 << 20}, enforcement: sandbox.EnforcementCgroup2,
			log: []string{
				"mkdir v2/user/me/sbx", "write v2/user/me/sbx/cgroup.subtree_control +memory", "mkdir v2/user/me/sbx/a1",
				"write v2/user/me/sbx/a1/memory.max 1048576", "write v2/user/me/sbx/a1/memory.swap.max 0", "write v2/user/me/sbx/a1/memory.oom.group 0",
			},
		},
		"unified, in a leaf of a delegated tree": {
			build:  inLeafOf("agent"),
			limits: Limits{MemoryBytes: 1 << 20}, enforcement: sandbox.EnforcementCgroup2,
			log: []string{
				"mkdir v2/agent/sbx", "write v2/agent/sbx/cgroup.subtree_control +memory", "mkdir v2/agent/sbx/a1",
				"write v2/agent/sbx/a1/memory.max 1048576", "write v2/agent/sbx/a1/memory.swap.max 0", "write v2/agent/sbx/a1/memory.oom.group 0",
			},
		},
		"hybrid": {
			build: func(k *kernel) {
				k.mountV2("/", "", false)
				k.mountV1("memory")
				k.mountV1("pids")
				k.mountV1("cpu,cpuacct")
			},
			limits: full(), enforcement: sandbox.EnforcementHybrid,
			log: []string{
				"mkdir v2/sbx", "mkdir v2/sbx/a1",
				"mkdir memory/sbx", "mkdir memory/sbx/a1",
				"write memory/sbx/a1/memory.limit_in_bytes 67108864", "write memory/sbx/a1/memory.swappiness 0", "write memory/sbx/a1/memory.memsw.limit_in_bytes 67108864",
				"mkdir pids/sbx", "mkdir pids/sbx/a1", "write pids/sbx/a1/pids.max 32",
				"mkdir cpu,cpuacct/sbx", "mkdir cpu,cpuacct/sbx/a1",
				"write cpu,cpuacct/sbx/a1/cpu.cfs_period_us 100000", "write cpu,cpuacct/sbx/a1/cpu.cfs_quota_us 150000",
			},
		},
		"legacy takes freezer, pids and cpuacct for the kill and the count": {
			build: func(k *kernel) {
				for _, c := range []string{"memory", "freezer", "pids", "cpu,cpuacct"} {
					k.mountV1(c)
				}
			},
			limits: Limits{CPU: 1}, enforcement: sandbox.EnforcementCgroup1,
			log: []string{
				"mkdir memory/sbx", "mkdir memory/sbx/a1", "mkdir freezer/sbx", "mkdir freezer/sbx/a1", "mkdir pids/sbx", "mkdir pids/sbx/a1",
				"mkdir cpu,cpuacct/sbx", "mkdir cpu,cpuacct/sbx/a1",
				"write cpu,cpuacct/sbx/a1/cpu.cfs_period_us 100000", "write cpu,cpuacct/sbx/a1/cpu.cfs_quota_us 100000",
			},
		},
		"memory in v1, pids in v2": {
			build: func(k *kernel) {
				k.mountV2("/", "pids", false)
				k.mountV1("memory")
			},
			limits: Limits{PIDs: 7}, enforcement: sandbox.EnforcementHybrid,
			log: []string{
				"write v2/cgroup.subtree_control +pids", "mkdir v2/sbx", "write v2/sbx/cgroup.subtree_control +pids", "mkdir v2/sbx/a1",
				"write v2/sbx/a1/pids.max 7", "mkdir memory/sbx", "mkdir memory/sbx/a1",
			},
		},
		"the holder was tidied away in between": {
			build: func(k *kernel) {
				k.mountV1("memory")
				k.refuse["memory/sbx/a1"] = fs.ErrNotExist
			},
			enforcement: sandbox.EnforcementCgroup1,
			log:         []string{"mkdir memory/sbx", "mkdir memory/sbx/a1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKernel(t)
			tc.build(k)
			g, err := Create(k.host(), "a1", tc.limits)
			require.NoError(t, err)
			assert.Equal(t, tc.enforcement, g.Enforcement())
			assert.Equal(t, tc.log, k.log)
			var missing []string
			for _, m := range g.Missing() {
				missing = append(missing, m.Limit)
				assert.NotEmpty(t, m.Reason)
			}
			assert.Equal(t, tc.missing, missing)
		})
	}
}

func TestHolderMadeAnewHandsDownAgain(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	k.mountV2("/", "cpu memory pids", false)
	h := k.host()
	h.tree = anew{k}
	g, err := Create(h, "a1", full())
	require.NoError(t, err)
	assert.Empty(t, g.Missing())
	assert.Equal(t, "67108864", k.get("v2/sbx/a1/memory.max"))
	assert.Equal(t, "32", k.get("v2/sbx/a1/pids.max"))

	h.tree = anew{k}
	k.refuse["v2/sbx/cgroup.subtree_control"] = syscall.EBUSY
	_, err = Create(h, "a2", full())
	require.ErrorContains(t, err, "busy")
	assert.NoDirExists(t, filepath.Join(k.root, "v2/sbx/a2"))
}

// tidied is a machine on which the holder goes between two looks at it.
type tidied struct{ *kernel }

func (d tidied) checkWritable(file string) error {
	if filepath.Base(file) == holderName {
		return errors.Join(d.disk.removeGroupDir(file), fs.ErrNotExist)
	}
	return d.kernel.checkWritable(file)
}

func TestHolderTidiedAwayBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	unified(k)
	h := k.host()
	require.NoError(t, os.Mkdir(filepath.Join(k.root, "v2/sbx"), 0o750))
	h.rights = tidied{k}
	g, err := Create(h, "a1", Limits{MemoryBytes: 1 << 20})
	require.NoError(t, err)
	assert.Equal(t, sandbox.EnforcementCgroup2, g.Enforcement())
	require.NoError(t, g.Remove())

	k.refuse["v2/sbx/cgroup.subtree_control"] = syscall.ENODEV // how the kernel refuses to write into what is gone
	require.NoError(t, os.WriteFile(filepath.Join(k.root, "v2/sbx/cgroup.subtree_control"), nil, 0o600))
	require.NoError(t, h.openHolder(g, site{hierarchy: *h.unified, base: h.unified.mount, use: []string{"memory"}}, filepath.Join(k.root, "v2/sbx")))
}

func TestCreateFailsWhole(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		build func(k *kernel)
		want  []string
	}{
		"nothing mounted":        {func(*kernel) {}, []string{"none is mounted"}},
		"memory limit refused":   {func(k *kernel) { k.mountV1("memory"); k.refuse["memory/sbx/a1/memory.limit_in_bytes"] = syscall.EINVAL }, []string{"cgroup1: invalid argument"}},
		"memory not handed down": {func(k *kernel) { k.mountV2("/", "memory", true) }, []string{"does not delegate the memory controller"}},
		"late failure undoes the early directories": {func(k *kernel) {
			k.mountV2("/", "", false)
			k.mountV1("memory")
			k.mountV1("pids")
			k.refuse["pids/sbx/a1"] = syscall.ENOSPC
		}, []string{"hybrid: no space left", "cgroup1: no space left"}},
		"not ours to write": {func(k *kernel) { k.mountV1("memory"); k.denied["memory"] = true }, []string{"no group can be made below", "permission denied"}},
		"own group outside of what may be left": {func(k *kernel) {
			k.mountV2("/user/me", "memory", true)
			k.put("v2/cgroup.subtree_control", "memory")
			k.denied["v2/cgroup.procs"] = true
		}, []string{"no process can be moved below"}},
		"a slice of a user's systemd":     {inLeafOf("app.slice"), []string{"no group can be made below"}},
		"the service of a user's systemd": {inLeafOf("user@7.service"), []string{"no group can be made below"}},
		"own group holds processes": {func(k *kernel) {
			k.mountV2("/user/me", "memory", true)
			k.given["v2/user/me"] = true
			k.put("v2/user/me/cgroup.controllers", "memory")
			k.denied["v2"] = true
		}, []string{"v2/user/me does not delegate the memory controller", "no group can be made below"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKernel(t)
			tc.build(k)
			g, err := Create(k.host(), "a1", full())
			require.ErrorIs(t, err, ErrNoCgroup)
			assert.Nil(t, g)
			for _, want := range tc.want {
				assert.Contains(t, err.Error(), want)
			}
			assert.NotContains(t, err.Error(), "\n")
			assert.Empty(t, leftovers(t, k), "a failed create leaves no group")
		})
	}
}

func leftovers(t *testing.T, k *kernel) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(k.root, func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "a1" {
			found = append(found, k.rel(file))
		}
		return err
	}))
	return found
}

func TestSoftLimitsAreReported(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	k.mountV2("/", "cpu memory pids", false)
	k.refuse["v2/sbx/a1/memory.swap.max"] = fs.ErrNotExist
	k.refuse["v2/sbx/a1/pids.max"] = syscall.EINVAL
	k.put("v2/cgroup.subtree_control", "memory pids cpu")
	k.put("v2/sbx/cgroup.subtree_control", "")
	k.put("v2/sbx/cgroup.controllers", "memory pids") // cpu is held back on the way
	k.put("v2/sbx/cgroup.procs", "")
	k.put("v2/sbx/cgroup.events", "")
	g, err := Create(k.host(), "a1", full())
	require.NoError(t, err)
	reasons := map[string]string{}
	for _, m := range g.Missing() {
		reasons[m.Limit] = m.Reason
	}
	assert.Len(t, reasons, 3)
	assert.Contains(t, reasons["swap"], "not exist")
	assert.Contains(t, reasons["pids"], "invalid argument")
	assert.Contains(t, reasons["cpu"], "no such file")
	assert.Equal(t, g.Missing(), g.State().Missing)
}

func TestCreateTakesNothingOver(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	k.mountV1("memory")
	k.mountV1("pids")
	h := k.host()
	_, err := Create(h, "a1", Limits{})
	require.NoError(t, err)
	_, err = Create(h, "a1", Limits{})
	require.ErrorIs(t, err, ErrExists)
	assert.DirExists(t, filepath.Join(k.root, "memory/sbx/a1"), "the first one stays")
	require.NoError(t, os.RemoveAll(filepath.Join(k.root, "memory/sbx/a1")))
	_, err = Create(h, "a1", Limits{})
	require.ErrorIs(t, err, ErrExists, "in any of the hierarchies")
	assert.NoDirExists(t, filepath.Join(k.root, "memory/sbx/a1"), "and the half that was made goes")
}

func TestCreateRefusesNonsense(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	k.mountV1("memory")
	for name, l := range map[string]Limits{
		"memory": {MemoryBytes: -1}, "pids": {PIDs: -1}, "cpu": {CPU: -0.1}, "nan": {CPU: math.NaN()}, "inf": {CPU: math.Inf(1)},
	} {
		_, err := Create(k.host(), "a1", l)
		require.ErrorIs(t, err, ErrLimits, name)
	}
	for _, id := range []string{"", ".", "..", "a/b", "../x", "a.b", "a b", "ä", "a\n", strings.Repeat("x", maxName+1)} {
		_, err := Create(k.host(), id, Limits{})
		require.ErrorIs(t, err, ErrName, "%q", id)
	}
	assert.Empty(t, k.log)
}

func TestQuota(t *testing.T) {
	t.Parallel()
	for cpu, want := range map[float64]int64{0.001: 1000, 0.01: 1000, 0.5: 50_000, 1: 100_000, 2.5: 250_000} {
		assert.Equal(t, want, Limits{CPU: cpu}.cpuQuota(), "%v", cpu)
	}
}
