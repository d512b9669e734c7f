package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

// realHost is this machine with an owner of its own for the test; it skips
// where no group can be made.
func realHost(t *testing.T) Host {
	t.Helper()
	owner := strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()) + "-" + strconv.Itoa(os.Getpid())
	h, err := Detect(Roots{Proc: "/proc", Owner: owner[max(0, len(owner)-60):]}, 0)
	require.NoError(t, err)
	for _, p := range h.Possible() {
		if p.OK {
			return h
		}
	}
	t.Skipf("no control group can be made here: %+v", h.Possible())
	return h
}

// realGroup is a group that is killed and removed with the test.
func realGroup(t *testing.T, h Host, l Limits) *Group {
	t.Helper()
	g, err := Create(h, "real", l)
	if errors.Is(err, ErrNoCgroup) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), tiertest.Limit(t))
		defer cancel()
		_, err := g.Kill(ctx)
		assert.NoError(t, err)
		assert.NoError(t, g.Remove())
	})
	return g
}

// start starts a program inside the group the way a supervisor does: from a
// joined, locked thread.
func start(t *testing.T, g *Group, argv ...string) *os.Process {
	t.Helper()
	var p *os.Process
	var err error
	onThread(func() bool {
		if err = g.JoinThread(); err != nil {
			return true
		}
		p, err = spawn(g, argv)
		return false // the thread stays in the group until it ends
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func spawn(g *Group, argv []string) (*os.Process, error) {
	file := argv[0]
	for _, dir := range []string{"/bin", "/usr/bin"} {
		if _, err := os.Stat(filepath.Join(dir, argv[0])); err == nil {
			file = filepath.Join(dir, argv[0])
			break
		}
	}
	attr := &os.ProcAttr{Files: []*os.File{nil, nil, nil}, Sys: &syscall.SysProcAttr{}}
	if fd := g.FD(); fd >= 0 {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, fd
	}
	return os.StartProcess(file, argv, attr)
}

func TestChildIsBornInEveryDirectory(t *testing.T) {
	t.Parallel()
	h := realHost(t)
	g := realGroup(t, h, Limits{MemoryBytes: 64 << 20, PIDs: 32, CPU: 0.5})
	before := ownGroups(t)
	p := start(t, g, "sleep", "60")
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid) + "/cgroup")
	require.NoError(t, err)
	joined := 0
	for _, path := range parseMembership(string(text)) {
		if strings.HasSuffix(path, "/sbx/"+h.dirName("real")) {
			joined++
		}
	}
	assert.GreaterOrEqual(t, joined, len(g.Paths()), "in %s of\n%s", g.Paths(), text)
	pids, err := g.PIDs()
	require.NoError(t, err)
	assert.Equal(t, []int{p.Pid}, pids)
	assert.Equal(t, before, ownGroups(t), "the supervisor stays where it was")
	assert.Empty(t, g.Missing())
}

func ownGroups(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	return parseMembership(string(text))
}

func TestHogIsKilledAndCounted(t *testing.T) {
	t.Parallel()
	g := realGroup(t, realHost(t), Limits{MemoryBytes: 64 << 20})
	p := start(t, g, "dd", "if=/dev/zero", "of=/dev/null", "bs=256M", "count=1")
	state, err := p.Wait()
	require.NoError(t, err)
	status, ok := state.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	assert.Equal(t, syscall.SIGKILL, status.Signal())
	s := g.Stats()
	require.NotNil(t, s.OOMKills)
	assert.Equal(t, int64(1), *s.OOMKills, "the counter outlives the process")
	assert.Equal(t, int64(64<<20), *s.LimitBytes)
	assert.GreaterOrEqual(t, *s.PeakBytes, int64(64<<20)*97/100)
	assert.Zero(t, *s.PIDs)
	again, err := Reopen(g.State())
	require.NoError(t, err)
	assert.Equal(t, int64(1), *again.Stats().OOMKills, "another process reads the same")
}

func TestKillReachesThoseThatRanAway(t *testing.T) {
	t.Parallel()
	g := realGroup(t, realHost(t), Limits{PIDs: 100})
	start(t, g, "sh", "-c", "trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM; sleep 60 & sleep 60 & wait' &) ; sleep 60 & wait")
	require.Eventually(t, func() bool {
		pids, err := g.PIDs()
		return err == nil && len(pids) >= 5
	}, tiertest.Limit(t), 5*time.Millisecond)
	n, err := g.Kill(t.Context())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, n, 5)
	empty, err := g.Empty()
	require.NoError(t, err)
	assert.True(t, empty)
	require.NoError(t, g.Remove())
	n, err = g.Kill(t.Context())
	require.NoError(t, err, "a removed group is empty")
	assert.Zero(t, n)
	require.NoError(t, g.Remove(), "removed twice")
}

func TestChildOutOfMemoryIsCountedToo(t *testing.T) {
	t.Parallel()
	g := realGroup(t, realHost(t), Limits{MemoryBytes: 64 << 20})
	p := start(t, g, "sh", "-c", "dd if=/dev/zero of=/dev/null bs=256M count=1 2>/dev/null; exit 3")
	state, err := p.Wait()
	require.NoError(t, err)
	assert.Equal(t, 3, state.ExitCode(), "the main program outlives its child: memory.oom.group stays 0")
	assert.Equal(t, int64(1), *g.Stats().OOMKills)
}

func TestKillFromOutsideCountsNoOutOfMemory(t *testing.T) {
	t.Parallel()
	g := realGroup(t, realHost(t), Limits{MemoryBytes: 64 << 20})
	p := start(t, g, "sleep", "60")
	require.NoError(t, p.Kill())
	_, err := p.Wait()
	require.NoError(t, err)
	assert.Zero(t, *g.Stats().OOMKills)
}

func TestSignalReachesAll(t *testing.T) {
	t.Parallel()
	g := realGroup(t, realHost(t), Limits{})
	for range 3 {
		start(t, g, "sleep", "60")
	}
	n, err := g.Signal(syscall.SIGTERM)
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	require.Eventually(t, func() bool { ok, err := g.Empty(); return err == nil && ok }, tiertest.Limit(t), time.Millisecond)
	n, err = g.Signal(syscall.SIGTERM)
	require.NoError(t, err)
	assert.Zero(t, n)
}

func TestGroupRemovedUnderneath(t *testing.T) {
	t.Parallel()
	g := realGroup(t, realHost(t), Limits{MemoryBytes: 64 << 20})
	state := g.State()
	for _, dir := range g.Paths() {
		require.NoError(t, syscall.Rmdir(dir))
	}
	n, err := g.Kill(t.Context())
	require.NoError(t, err)
	assert.Zero(t, n)
	assert.Nil(t, g.Stats().OOMKills)
	_, err = g.Signal(syscall.SIGTERM)
	require.NoError(t, err)
	again, err := Reopen(state)
	require.NoError(t, err)
	assert.Len(t, again.Lost(), len(state.Dirs))
	onThread(func() bool {
		err = g.JoinThread()
		return true
	})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestGroupsOfTheProgramGoToo(t *testing.T) {
	t.Parallel()
	g := realGroup(t, realHost(t), Limits{})
	d, ok := g.unifiedDir()
	if !ok {
		t.Skip("needs v2")
	}
	nested := filepath.Join(d.Path, "inner")
	require.NoError(t, os.Mkdir(nested, 0o755))
	p := start(t, g, "sleep", "60")
	require.NoError(t, os.WriteFile(filepath.Join(nested, "cgroup.procs"), []byte(strconv.Itoa(p.Pid)), 0o600))
	require.ErrorIs(t, g.Remove(), ErrBusy, "the kernel keeps what is alive")
	n, err := g.Kill(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	require.NoError(t, g.Remove())
	assert.NoDirExists(t, d.Path)
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	h := realHost(t)
	failed := make(chan error, 32)
	for i := range cap(failed) {
		go func() {
			g, err := Create(h, "n"+strconv.Itoa(i), Limits{MemoryBytes: 1 << 20})
			if err == nil {
				err = errors.Join(g.Remove(), h.tidy())
			}
			failed <- err
		}()
	}
	for range cap(failed) {
		require.NoError(t, <-failed)
	}
	left, err := Orphans(h, func(string) bool { return false })
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestOrphanIsFoundAndKilled(t *testing.T) {
	t.Parallel()
	h := realHost(t)
	g := realGroup(t, h, Limits{MemoryBytes: 64 << 20})
	start(t, g, "sleep", "60")
	require.NoError(t, g.Close())
	left, err := Orphans(h, func(string) bool { return false })
	require.NoError(t, err)
	require.Len(t, left, 1)
	assert.Equal(t, g.Enforcement(), left[0].Enforcement)
	again, err := Reopen(left[0])
	require.NoError(t, err)
	n, err := again.Kill(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	require.NoError(t, again.Remove())
}

// moved lists a process at the first look and no more.
type moved struct {
	disk
	looks int
	pid   int
}

func (m *moved) readText(file string) (string, error) {
	if filepath.Base(file) != "cgroup.procs" {
		return m.disk.readText(file)
	}
	if m.looks++; m.looks == 1 {
		return strconv.Itoa(m.pid) + "\n", nil
	}
	return "", nil
}

func TestSignalLooksAgain(t *testing.T) {
	t.Parallel()
	p, err := spawn(newGroup(disk{}, State{}), []string{"sleep", "60"})
	require.NoError(t, err)
	dir := t.TempDir()
	g := newGroup(&moved{pid: p.Pid}, State{ID: "a1", Dirs: []Dir{{V2: true, Path: dir}}})
	n, err := g.Signal(syscall.SIGKILL)
	require.NoError(t, err)
	assert.Zero(t, n, "the process that had the PID is not in the group any more")
	require.NoError(t, p.Signal(syscall.Signal(0)))
	require.NoError(t, p.Kill())
	state, err := p.Wait()
	require.NoError(t, err)
	assert.False(t, state.Exited())
}

// tidy removes the shared holders named `sbx` that are empty. Groups in them
// keep them; a Create that runs at the same time makes them again. The holder of
// another user is not ours to tidy and no error.
func (h Host) tidy() error {
	var failed error
	for _, holder := range h.listHolders() {
		if err := h.tree.removeGroupDir(holder.path); err != nil && !noSuchGroup(err) && !isBusy(err) && !errors.Is(err, fs.ErrPermission) {
			failed = fmt.Errorf("tidy control groups: %w", err)
		}
	}
	return failed
}
