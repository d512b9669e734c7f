package cgroup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

// made is a group with memory on a model of the given layout.
func made(t *testing.T, build func(k *kernel)) (*kernel, *Group) {
	t.Helper()
	k := newKernel(t)
	build(k)
	g, err := Create(k.host(), "a1", Limits{MemoryBytes: 1 << 20})
	require.NoError(t, err)
	k.log = nil
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	return k, g
}

func unified(k *kernel) { k.mountV2("/", "memory", false) }

func hybrid(k *kernel) { k.mountV2("/", "", false); k.mountV1("memory") }

func legacy(k *kernel) { k.mountV1("memory"); k.mountV1("freezer"); k.mountV1("pids") }

func TestReopen(t *testing.T) {
	t.Parallel()
	k, g := made(t, hybrid)
	text, err := json.Marshal(g.State())
	require.NoError(t, err)
	var s State
	require.NoError(t, json.Unmarshal(text, &s))
	again, err := reopenGroup(k, s)
	require.NoError(t, err)
	assert.Equal(t, g.State(), again.State(), "a state survives the record")
	assert.Equal(t, g.Paths(), again.Paths())
	assert.Empty(t, again.Lost())

	require.NoError(t, os.RemoveAll(filepath.Join(k.root, "v2/sbx/a1")))
	s.Dirs[1].Inode++
	again, err = reopenGroup(k, s)
	require.NoError(t, err)
	assert.Equal(t, []Lost{{s.Dirs[0].Path, "missing"}, {s.Dirs[1].Path, "foreign"}}, again.Lost())
	assert.Empty(t, again.Paths())
	assert.Equal(t, -1, again.FD())
	require.NoError(t, again.Remove())
	assert.DirExists(t, s.Dirs[1].Path, "a foreign directory is never removed")
	n, err := again.Kill(t.Context())
	require.NoError(t, err)
	assert.Zero(t, n)
}

func TestReopenRefusesForeignPaths(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]Dir{
		"another group":            {Path: "/sys/fs/cgroup/system.slice/a1"},
		"the holder":               {Path: "/sys/fs/cgroup/sbx"},
		"another id":               {Path: "/sys/fs/cgroup/sbx/a2"},
		"owner and another id":     {Path: "/sys/fs/cgroup/sbx/o.a2"},
		"two dots":                 {Path: "/sys/fs/cgroup/sbx/o.p.a1"},
		"relative":                 {Path: "sbx/a1"},
		"unclean":                  {Path: "/sys/fs/cgroup/sbx/../sbx/a1"},
		"scope that is not lent":   {V2: true, Path: "/sys/fs/cgroup/sbx-a1.scope"},
		"program of another scope": {V2: true, Path: "/sys/fs/cgroup/sbx-a2.scope/program"},
		"empty":                    {},
	} {
		_, err := reopenGroup(disk{}, State{ID: "a1", Dirs: []Dir{d}})
		require.ErrorIs(t, err, ErrState, name)
	}
	_, err := reopenGroup(disk{}, State{ID: "..", Dirs: []Dir{{Path: "/sys/fs/sbx/.."}}})
	require.ErrorIs(t, err, ErrState)
}

func FuzzReopenStaysAtHome(f *testing.F) {
	f.Add("a1", "/c/sbx/a1", false)
	f.Add("a1", "/c/sbx-a1.scope/program", true)
	f.Fuzz(func(t *testing.T, id, dir string, v2 bool) {
		if (Dir{Path: dir, V2: v2}).checkDirPath(id) != nil {
			return
		}
		holder := filepath.Base(filepath.Dir(dir))
		if holder != "sbx" && holder != "sbx-"+id+".scope" {
			t.Fatalf("%q accepted for %q", dir, id)
		}
	})
}

func TestStats(t *testing.T) {
	t.Parallel()
	p := func(n int64) *int64 { return &n }
	seconds := func(s float64) *float64 { return &s }
	for name, tc := range map[string]struct {
		build func(k *kernel)
		files map[string]string
		want  Stats
	}{
		"v2": {unified, map[string]string{
			"v2/sbx/a1/memory.current": "5000\n", "v2/sbx/a1/memory.stat": "anon 1\ninactive_file 1000\n", "v2/sbx/a1/memory.peak": "9000\n",
			"v2/sbx/a1/memory.events.local": "oom 1\noom_kill 2\n", "v2/sbx/a1/memory.events": "oom 1\noom_kill 3\n", "v2/sbx/a1/cpu.stat": "usage_usec 2500000\n",
			"v2/sbx/a1/cgroup.procs": "999999010\n999999011\n",
		}, Stats{p(4000), p(9000), p(1 << 20), seconds(2.5), p(2), nil, nil, p(2), "cgroup2"}},
		"v2, killed below": {unified, map[string]string{
			"v2/sbx/a1/memory.events.local": "oom 0\noom_kill 0\n", "v2/sbx/a1/memory.events": "oom 4\noom_kill 3\n", "v2/sbx/a1/memory.max": "max\n",
		}, Stats{nil, nil, nil, seconds(0), p(0), nil, nil, p(3), "cgroup2"}},
		"v2 before 5.2, more cache than usage": {unified, map[string]string{
			"v2/sbx/a1/memory.events.local": "", "v2/sbx/a1/memory.events": "oom_kill 1\n", "v2/sbx/a1/memory.current": "5\n", "v2/sbx/a1/memory.stat": "inactive_file 10\n",
		}, Stats{p(0), nil, p(1 << 20), seconds(0), p(0), nil, nil, p(1), "cgroup2"}},
		"v2, cache not known": {unified, map[string]string{
			"v2/sbx/a1/memory.current": "5000\n", "v2/sbx/a1/memory.stat": "anon 1\n",
		}, Stats{nil, nil, p(1 << 20), seconds(0), p(0), nil, nil, nil, "cgroup2"}},
		"hybrid": {hybrid, map[string]string{
			"memory/sbx/a1/memory.usage_in_bytes": "5000\n", "memory/sbx/a1/memory.stat": "inactive_file 1\ntotal_inactive_file 2000\n", "memory/sbx/a1/memory.max_usage_in_bytes": "7000\n",
			"memory/sbx/a1/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", "v2/sbx/a1/cpu.stat": "usage_usec 500000\n",
		}, Stats{p(3000), p(7000), p(1 << 20), seconds(0.5), p(0), nil, nil, p(1), "hybrid"}},
		"legacy with cpuacct": {func(k *kernel) { legacy(k); k.mountV1("cpuacct") }, map[string]string{
			"cpuacct/sbx/a1/cpuacct.usage": "1500000000\n", "memory/sbx/a1/memory.oom_control": "oom_kill_disable 0\n",
		}, Stats{nil, nil, p(1 << 20), seconds(1.5), p(0), nil, nil, nil, "cgroup1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, g := made(t, tc.build)
			for file, text := range tc.files {
				k.put(file, text)
			}
			assert.Equal(t, tc.want, g.Stats())
		})
	}
}

// TestStatsOfTheLimitOfProcesses reads the counter of this group alone where the kernel has one.
func TestStatsOfTheLimitOfProcesses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		files map[string]string
		want  *int64
	}{
		{map[string]string{"v2/sbx/a1/pids.events": "max 7\n"}, new(int64(7))},
		{map[string]string{"v2/sbx/a1/pids.events": "max 7\n", "v2/sbx/a1/pids.events.local": "max 2\n"}, new(int64(2))},
		{nil, nil},
	} {
		k := newKernel(t)
		k.mountV2("/", "memory pids", false)
		g, err := Create(k.host(), "a1", Limits{MemoryBytes: 1 << 20, PIDs: 30})
		require.NoError(t, err)
		k.put("v2/sbx/a1/pids.current", "30\n")
		for file, text := range tc.files {
			k.put(file, text)
		}
		s := g.Stats()
		assert.Equal(t, tc.want, s.Refused)
		assert.Equal(t, new(int64(30)), s.Tasks)
		require.NoError(t, g.Close())
	}
}

func TestStatsOfNothing(t *testing.T) {
	t.Parallel()
	k, g := made(t, hybrid)
	require.NoError(t, g.Remove())
	s := g.Stats()
	assert.Nil(t, s.OOMKills, "gone is unknown, not zero")
	assert.Nil(t, s.MemoryBytes)
	assert.Nil(t, s.CPUSeconds)
	none, err := reopenGroup(k, State{ID: "a1", Enforcement: sandbox.EnforcementHybrid})
	require.NoError(t, err)
	assert.Equal(t, Stats{Source: "hybrid"}, none.Stats())
}

func TestRemove(t *testing.T) {
	t.Parallel()
	k, g := made(t, unified)
	require.NoError(t, k.makeGroupDir(filepath.Join(k.root, "v2/sbx/a1/nested")))
	require.NoError(t, k.makeGroupDir(filepath.Join(k.root, "v2/sbx/a1/nested/deep")))
	k.log = nil
	k.put("v2/sbx/a1/nested/deep/cgroup.procs", "999999012\n")
	require.ErrorIs(t, g.Remove(), ErrBusy)
	assert.Empty(t, k.log)
	k.put("v2/sbx/a1/nested/deep/cgroup.procs", "")
	require.NoError(t, g.Remove())
	assert.Equal(t, []string{"rmdir v2/sbx/a1/nested/deep", "rmdir v2/sbx/a1/nested", "rmdir v2/sbx/a1"}, k.log)
	require.NoError(t, g.Remove(), "removed underneath")
}

func TestRemoveSparesASuccessor(t *testing.T) {
	t.Parallel()
	k, g := made(t, unified)
	dir := g.Paths()[0]
	require.NoError(t, os.Rename(dir, dir+"-old")) // keeps its inode, so that the new one gets another
	require.NoError(t, k.makeGroupDir(dir))
	k.log = nil
	require.NoError(t, g.Remove())
	assert.Empty(t, k.log, "a directory of the same name that somebody else made stays")
	assert.DirExists(t, dir)
}

func TestOrphans(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	hybrid(k)
	mine := k.host()
	mine.owner = "me"
	theirs := k.host()
	theirs.owner = "you"
	for _, id := range []string{"live", "dead", "half"} {
		_, err := Create(mine, id, Limits{})
		require.NoError(t, err)
	}
	_, err := Create(theirs, "other", Limits{})
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(k.root, "memory/sbx/me.half")))
	require.NoError(t, os.Mkdir(filepath.Join(k.root, "memory/sbx/me.x.y"), 0o750))
	found, err := Orphans(mine, func(id string) bool { return id == "live" })
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.Equal(t, "dead", found[0].ID)
	assert.Equal(t, sandbox.EnforcementHybrid, found[0].Enforcement)
	assert.Len(t, found[0].Dirs, 2)
	assert.Equal(t, "half", found[1].ID)
	assert.Equal(t, sandbox.EnforcementNone, found[1].Enforcement)
	for _, s := range found {
		g, err := reopenGroup(k, s)
		require.NoError(t, err)
		require.NoError(t, g.Remove())
	}
	assert.DirExists(t, filepath.Join(k.root, "memory/sbx/you.other"))
	assert.DirExists(t, filepath.Join(k.root, "memory/sbx/me.live"))
	anyone := k.host()
	found, err = Orphans(anyone, func(string) bool { return false })
	require.NoError(t, err)
	assert.Empty(t, found, "without an owner only groups without one are ours")
}

func TestOrphansOfEachLayout(t *testing.T) {
	t.Parallel()
	for want, build := range map[string]func(*kernel){"cgroup2": unified, "cgroup1": legacy} {
		k, g := made(t, build)
		found, err := Orphans(k.host(), func(string) bool { return false })
		require.NoError(t, err)
		require.Len(t, found, 1)
		assert.Equal(t, want, string(found[0].Enforcement))
		assert.ElementsMatch(t, g.Paths(), pathsOf(found[0]))
	}
	k := newKernel(t)
	legacy(k)
	found, err := Orphans(k.host(), func(string) bool { return false })
	require.NoError(t, err, "no holder yet")
	assert.Empty(t, found)
}

func pathsOf(s State) []string {
	g := newGroup(disk{}, s)
	return g.Paths()
}

func TestOwnScope(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	k.mountV2("/user.slice/sbx-a1.scope", "memory pids", true)
	scope := "v2/user.slice/sbx-a1.scope"
	k.put(scope+"/cgroup.controllers", "memory pids")
	k.put(scope+"/memory.max", "1000\n")
	k.put(scope+"/memory.events", "oom_kill 1\n")
	g, err := OwnScope(k.host(), "a1")
	require.NoError(t, err)
	assert.Equal(t, []string{"mkdir " + scope + "/program"}, k.log, "nobody is moved, nothing is written")
	assert.Equal(t, sandbox.EnforcementScope, g.Enforcement())
	s := g.Stats()
	assert.Equal(t, int64(1000), *s.LimitBytes)
	assert.Equal(t, int64(1), *s.OOMKills)
	assert.Equal(t, int64(0), *s.PIDs, "the supervisor in the scope is not counted")
	assert.Equal(t, "systemd-scope", s.Source)
	again, err := reopenGroup(k, g.State())
	require.NoError(t, err)
	n, err := again.Kill(t.Context())
	require.NoError(t, err)
	assert.Zero(t, n)
	assert.Equal(t, "999994711\n", k.get(scope+"/cgroup.procs"), "the supervisor lives")
	_, err = OwnScope(k.host(), "a1")
	require.ErrorIs(t, err, ErrExists)
	require.NoError(t, again.Remove())
	assert.DirExists(t, filepath.Join(k.root, scope), "the scope is systemd's to remove")
}

func TestOwnScopeRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		own, id string
		build   func(k *kernel)
		want    error
	}{
		"another scope": {"/user.slice/sbx-a2.scope", "a1", func(*kernel) {}, ErrNoScope},
		"bad id":        {"/user.slice/sbx-a2.scope", "a/1", func(*kernel) {}, ErrName},
		"no memory":     {"/sbx-a1.scope", "a1", func(*kernel) {}, ErrNoCgroup},
		"not delegated": {"/sbx-a1.scope", "a1", func(k *kernel) {
			k.put("v2/sbx-a1.scope/cgroup.controllers", "memory")
			k.refuse["v2/sbx-a1.scope/program"] = syscall.EACCES
		}, ErrNoCgroup},
	} {
		k := newKernel(t)
		k.mountV2(tc.own, "memory", true)
		tc.build(k)
		_, err := OwnScope(k.host(), tc.id)
		require.ErrorIs(t, err, tc.want, name)
	}
	_, err := OwnScope(newKernel(t).host(), "a1")
	require.ErrorIs(t, err, ErrNoScope)
}

func TestReopenRecorded(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{"empty": "", "rubbish": "{", "foreign": `{"id":"a1","dirs":[{"path":"/sys/fs/cgroup"}]}`} {
		_, err := ReopenRecorded(json.RawMessage(raw))
		require.ErrorIs(t, err, ErrState, name)
	}
	g, err := ReopenRecorded(json.RawMessage(`{"id":"a1","dirs":[{"path":"/nowhere/sbx/a1","inode":1}]}`))
	require.NoError(t, err)
	assert.Equal(t, []Lost{{"/nowhere/sbx/a1", "missing"}}, g.Lost())
}
