package cgroup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

func onlyLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("waits on kernel events, which only Linux has")
	}
}

func TestKillLetsTheKernelDoIt(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	k, g := made(t, unified)
	k.put("v2/sbx/a1/cgroup.procs", "999999998\n999999999\n")
	k.put("v2/sbx/a1/cgroup.events", "populated 1\nfrozen 0\n")
	n, err := g.Kill(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	assert.Equal(t, []string{"write v2/sbx/a1/cgroup.kill 1"}, k.log)
}

func TestKillSweepsWhereTheKernelCannot(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	k, g := made(t, legacy)
	k.put("memory/sbx/a1/cgroup.procs", "999999999\n") // a PID beyond pid_max: no process is signalled
	k.put("memory/sbx/a1/tasks", "999999999\n")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	n, err := g.Kill(ctx)
	require.ErrorIs(t, err, ErrAlive)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, 1, n)
	require.GreaterOrEqual(t, len(k.log), 3)
	assert.Equal(t, []string{"write pids/sbx/a1/pids.max 0", "write freezer/sbx/a1/freezer.state FROZEN", "write freezer/sbx/a1/freezer.state THAWED"}, k.log[:3])
	assert.Equal(t, "THAWED", k.get("freezer/sbx/a1/freezer.state"), "the frozen cannot die")
	assert.Equal(t, 1, strings.Count(strings.Join(k.log, "\n"), "FROZEN"), "what was signalled is left to die")
}

func TestKillFreezesAgainWhatHasForked(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	k, g := made(t, legacy)
	ctx, cancel := context.WithTimeout(t.Context(), tiertest.Limit(t))
	defer cancel()
	f := &forkingKernel{kernel: k, frozenTwice: cancel}
	f.members("999999999\n")
	g.tree = f
	_, err := g.Kill(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// forkingKernel has another member after the first round.
type forkingKernel struct {
	*kernel

	frozen      int
	frozenTwice context.CancelFunc
}

func (f *forkingKernel) members(pids string) {
	f.put("memory/sbx/a1/cgroup.procs", pids)
	f.put("memory/sbx/a1/tasks", pids)
}

func (f *forkingKernel) writeFile(file, value string) error {
	switch {
	case value == "FROZEN":
		if f.frozen++; f.frozen == 2 {
			f.frozenTwice()
		}
	case value == "THAWED" && f.frozen == 1:
		f.members("999999998\n999999999\n")
	}
	return f.kernel.writeFile(file, value)
}

func TestKillWaitsForTheAnnouncement(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	k, g := made(t, unified)
	k.put("v2/sbx/a1/cgroup.procs", "999999999\n")
	k.put("v2/sbx/a1/cgroup.events", "populated 1\n")
	g.tree = &slowKernel{k}
	n, err := g.Kill(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, []string{"write v2/sbx/a1/cgroup.kill 1"}, k.log, "no signal is sent while the kernel is at it")
}

// slowKernel kills some time after it was asked to.
type slowKernel struct{ *kernel }

func (s *slowKernel) writeFile(file, value string) error {
	s.note("write", s.rel(file), value)
	time.AfterFunc(20*time.Millisecond, func() {
		s.put("v2/sbx/a1/cgroup.procs", "")
		s.put("v2/sbx/a1/cgroup.events", "populated 0\n")
	})
	return nil
}

func TestKillStopsWithTheContext(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	k, g := made(t, unified)
	k.put("v2/sbx/a1/cgroup.procs", "999999999\n")
	stuck := &stuckKernel{kernel: k}
	g.tree = stuck
	k.put("v2/sbx/a1/cgroup.events", "populated 1\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(20*time.Millisecond, cancel).Stop()
	began := time.Now()
	_, err := g.Kill(ctx)
	require.ErrorIs(t, err, ErrAlive)
	require.ErrorIs(t, err, context.Canceled)
	if tiertest.IsLong("that a cancel interrupts the wait for a kill, before its next look after a second") {
		assert.Less(t, time.Since(began), 900*time.Millisecond, "the cancel interrupts the wait itself")
	}
}

// stuckKernel takes the order to kill and does nothing.
type stuckKernel struct{ *kernel }

func (*stuckKernel) writeFile(string, string) error { return nil }

func TestKillReportsErrors(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	k, g := made(t, unified)
	k.refuse["v2/sbx/a1/cgroup.kill"] = syscall.EPERM
	_, err := g.Kill(t.Context())
	require.ErrorIs(t, err, syscall.EPERM)
	k.refuse["v2/sbx/a1/cgroup.kill"] = fs.ErrNotExist // before 5.14
	_, err = g.Kill(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(k.root, "v2/sbx/a1/cgroup.procs")))
	require.NoError(t, os.Mkdir(filepath.Join(k.root, "v2/sbx/a1/cgroup.procs"), 0o750))
	_, err = g.Kill(t.Context())
	require.Error(t, err, "an unreadable list is not an empty one")
	_, err = g.Empty()
	require.Error(t, err)
	_, err = g.Signal(syscall.SIGTERM)
	require.Error(t, err)
	assert.Nil(t, g.Stats().PIDs)
}

func TestMembers(t *testing.T) {
	t.Parallel()
	k, g := made(t, legacy)
	g.proc = filepath.Join(k.root, "proc")
	k.put("memory/sbx/a1/cgroup.procs", "999999100\n999999200\n999999300\n0\n")
	k.put("memory/sbx/a1/tasks", "999999100\n999999201\n999999301\n")
	k.put("proc/999999200/stat", "999999200 (a) Z) R 1 1") // alive: a name may hold anything
	k.put("proc/999999300/stat", "999999300 (a b) Z 1 1")
	require.NoError(t, k.makeGroupDir(filepath.Join(k.root, "memory/sbx/a1/own")))
	k.put("memory/sbx/a1/own/cgroup.procs", "999999400\n")
	k.put("memory/sbx/a1/own/tasks", "999999400\n")
	k.put("pids/sbx/a1/cgroup.procs", "999999100\n999999500\n")
	k.put("pids/sbx/a1/tasks", "999999100\n999999500\n")
	pids, err := g.PIDs()
	require.NoError(t, err)
	assert.Equal(t, []int{999999100, 999999300, 999999400, 999999500}, pids, "999999200 only sent a thread in; 999999300 has lost its first thread")
	empty, err := g.Empty()
	require.NoError(t, err)
	assert.False(t, empty)
}

func TestMembersNeedTheThreadList(t *testing.T) {
	t.Parallel()
	k, g := made(t, legacy)
	k.put("memory/sbx/a1/cgroup.procs", "999999100\n")
	g.tree = unreadable{k, "tasks", syscall.EIO}
	_, err := g.PIDs()
	require.ErrorIs(t, err, syscall.EIO)
	g.tree = unreadable{k, "tasks", syscall.ENODEV}
	pids, err := g.PIDs()
	require.NoError(t, err, "removed in between")
	assert.Empty(t, pids)
	g.tree = unreadable{k, "cgroup.procs", syscall.EOPNOTSUPP}
	pids, err = g.PIDs()
	require.NoError(t, err, "a threaded group lists its processes above")
	assert.Empty(t, pids)
}

type unreadable struct {
	*kernel
	name string
	err  error
}

func (u unreadable) readText(file string) (string, error) {
	if filepath.Base(file) == u.name {
		return "", u.err
	}
	return u.kernel.readText(file)
}

func TestFreezeRequests(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	k, g := made(t, unified)
	require.NoError(t, g.requestFrozen(true))
	assert.Contains(t, k.get("v2/sbx/a1/cgroup.events"), "frozen 1")
	require.NoError(t, g.requestFrozen(false))
	assert.Contains(t, k.get("v2/sbx/a1/cgroup.events"), "frozen 0")

	k, g = made(t, legacy)
	require.NoError(t, g.requestFrozen(true))
	assert.Equal(t, "FROZEN", k.get("freezer/sbx/a1/freezer.state"))
	require.NoError(t, os.RemoveAll(filepath.Join(k.root, "freezer/sbx/a1")))
	require.NoError(t, g.requestFrozen(true), "a removed group needs no freezing")

	_, g = made(t, func(k *kernel) { k.mountV1("memory") })
	require.ErrorIs(t, g.requestFrozen(true), errors.ErrUnsupported)
}

func TestJoin(t *testing.T) {
	t.Parallel()
	k, g := made(t, legacy)
	g.proc = filepath.Join(k.root, "proc")
	k.put("proc/thread-self/mountinfo", k.get("proc/self/mountinfo"))
	k.put("proc/thread-self/cgroup", strings.ReplaceAll(k.get("proc/self/cgroup"), ":memory:/", ":memory:/home"))
	k.put("memory/home/tasks", "")
	thread, end := sameThread()
	defer end()
	require.NoError(t, thread(g.JoinThread))
	assert.Equal(t, []string{"write memory/sbx/a1/tasks 0", "write freezer/sbx/a1/tasks 0", "write pids/sbx/a1/tasks 0"}, k.log)

	k.log = nil
	k.refuse["pids/sbx/a1/tasks"] = syscall.EACCES
	require.ErrorIs(t, thread(g.JoinThread), syscall.EACCES)
	assert.Equal(t, []string{"write memory/sbx/a1/tasks 0", "write freezer/sbx/a1/tasks 0", "write memory/home/tasks 0", "write freezer/tasks 0"}, k.log, "a failed join goes back")

	k.refuse["memory/home/tasks"] = syscall.EACCES
	require.ErrorIs(t, thread(g.JoinThread), ErrStranded)
	delete(k.refuse, "memory/home/tasks")
	k.put("proc/thread-self/cgroup", "4:memory:/../..\n")
	require.ErrorIs(t, thread(g.JoinThread), ErrStranded, "the former group is not visible")
	k.put("proc/thread-self/cgroup", k.get("proc/self/cgroup"))
	require.NoError(t, os.Remove(filepath.Join(k.root, "proc/thread-self/mountinfo")))
	require.ErrorIs(t, thread(g.JoinThread), fs.ErrNotExist)
}

// sameThread gives a thread that runs one call after the other.
func sameThread() (run func(func() error) error, end func()) {
	calls, results := make(chan func() error), make(chan error)
	go onThread(func() bool {
		for call := range calls {
			results <- call()
		}
		return true
	})
	return func(call func() error) error { calls <- call; return <-results }, func() { close(calls) }
}

func TestUnifiedNeedsNoJoin(t *testing.T) {
	t.Parallel()
	_, u := made(t, unified)
	require.NoError(t, u.JoinThread())
	require.NoError(t, os.RemoveAll(u.Paths()[0]))
	require.ErrorIs(t, u.JoinThread(), fs.ErrNotExist, "a program would start outside")
}

func TestDescriptor(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	_, g := made(t, hybrid)
	fd := g.FD()
	assert.Positive(t, fd)
	assert.Equal(t, fd, g.FD(), "opened once")
	require.NoError(t, g.Close())
	require.NoError(t, g.Close())
	_, l := made(t, legacy)
	assert.Equal(t, -1, l.FD())
}
