package identity

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

func TestSelfIsAliveAndOnesOwn(t *testing.T) {
	t.Parallel()
	p, err := Self()
	require.NoError(t, err)
	assert.Equal(t, os.Getpid(), p.PID)
	assert.Len(t, p.BootID, 36)
	assert.NotZero(t, p.StartTicks)
	alive, err := p.Alive()
	require.NoError(t, err)
	assert.True(t, alive)
	again, err := Of(os.Getpid())
	require.NoError(t, err)
	assert.Equal(t, p, again, "an identity does not change")
}

func TestIdentitiesThatDoNotMatch(t *testing.T) {
	t.Parallel()
	self, err := Self()
	require.NoError(t, err)
	if self.PidfdInode == 0 {
		t.Skip("this kernel has no pidfd inodes")
	}
	for name, tc := range map[string]struct {
		change func(*Process)
		want   error
	}{
		"boot":               {func(p *Process) { p.BootID = "00000000-0000-0000-0000-000000000000" }, ErrDead},
		"inode":              {func(p *Process) { p.PidfdInode++ }, ErrForeign},
		"start, no inode":    {func(p *Process) { p.PidfdInode = 0; p.StartTicks++ }, ErrForeign},
		"free number":        {func(p *Process) { p.PID = 1 << 22 }, ErrDead},
		"start beside inode": {func(p *Process) { p.StartTicks++ }, nil},
		"no inode":           {func(p *Process) { p.PidfdInode = 0 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := self
			tc.change(&p)
			h, err := Open(p)
			require.ErrorIs(t, err, tc.want)
			alive, err := p.Alive()
			require.NoError(t, err)
			assert.Equal(t, tc.want == nil, alive)
			if h != nil {
				require.NoError(t, h.Close())
			}
		})
	}
}

func TestThreadNumberIsForeign(t *testing.T) {
	t.Parallel()
	threads, err := listNumbers("/proc/self/task")
	require.NoError(t, err)
	for _, tid := range threads {
		if tid == os.Getpid() {
			continue
		}
		if _, err := Of(tid); err != nil { // the thread may have ended meanwhile
			assert.True(t, errors.Is(err, ErrForeign) || errors.Is(err, ErrDead), "got %v", err)
			return
		}
	}
	t.Skip("this process has one thread")
}

func TestZombieIsDeadAndWaitSeesIt(t *testing.T) {
	t.Parallel()
	c := cat(t)
	p, err := Of(c.Process.Pid)
	require.NoError(t, err)
	h, err := Open(p)
	require.NoError(t, err)
	closeLater(t, h)
	assert.Equal(t, p, h.process)
	require.NoError(t, h.Signal(0))

	waited := make(chan error, 1)
	go func() { waited <- h.Wait(t.Context()) }()
	c.stdin.Close()
	require.NoError(t, <-waited)

	s, err := Host().Stat(p.PID)
	require.NoError(t, err, "nobody has reaped it yet")
	assert.Equal(t, byte('Z'), s.State)
	assert.True(t, s.Dead())
	requireDead(t, p, h)
	again, err := Of(p.PID)
	require.NoError(t, err, "a zombie has an identity")
	assert.Equal(t, p, again)

	require.NoError(t, c.Wait())
	requireDead(t, p, h)
	_, err = Of(p.PID)
	require.ErrorIs(t, err, ErrDead)
}

func requireDead(t *testing.T, p Process, h *Handle) {
	t.Helper()
	alive, err := p.Alive()
	require.NoError(t, err)
	assert.False(t, alive)
	_, err = Open(p)
	require.ErrorIs(t, err, ErrDead)
	require.ErrorIs(t, h.Signal(syscall.SIGKILL), ErrDead)
	require.NoError(t, h.Wait(t.Context()), "what has ended is not waited for")
}

func TestMainThreadMayEndBeforeItsProcess(t *testing.T) {
	t.Parallel()
	c := part(t, "leader-exits")
	if first := c.line(t); first != "ready" {
		t.Skip(first)
	}
	p, err := Of(c.Process.Pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		s, err := Host().Stat(p.PID)
		return err == nil && s.State == 'Z'
	}, tiertest.Limit(t), pollEvery)
	s, err := Host().Stat(p.PID)
	require.NoError(t, err)
	assert.False(t, s.Dead(), "%d threads live", s.Threads)
	alive, err := p.Alive()
	require.NoError(t, err)
	assert.True(t, alive)
	h, err := Open(p)
	require.NoError(t, err)
	closeLater(t, h)
	require.NoError(t, h.Signal(syscall.SIGKILL))
	require.NoError(t, h.Wait(t.Context()))
	requireDead(t, p, h)
}

func TestWaitEndsWithItsContextAndNoOther(t *testing.T) {
	t.Parallel()
	c := cat(t)
	h, err := Proc{}.Open(statOf(t, c.Process.Pid))
	require.NoError(t, err)
	closeLater(t, h)

	short, cancel := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	var begun sync.WaitGroup
	begun.Add(2)
	go func() { begun.Done(); first <- h.Wait(short) }()
	go func() { begun.Done(); second <- h.Wait(t.Context()) }()
	begun.Wait()
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	select {
	case err := <-second:
		t.Fatalf("the other wait ended too: %v", err)
	default:
	}
	require.NoError(t, h.Close(), "a wait that has begun goes on")
	require.NoError(t, c.Process.Kill())
	if err := <-second; err != nil {
		require.ErrorIs(t, err, os.ErrClosed, "it had not begun before Close")
	}
}

func TestClosedHandleDoesNothing(t *testing.T) {
	t.Parallel()
	c := cat(t)
	h, err := Proc{}.Open(statOf(t, c.Process.Pid))
	require.NoError(t, err)
	require.NoError(t, h.Close())
	require.NoError(t, h.Close())
	require.ErrorIs(t, h.Signal(syscall.SIGKILL), os.ErrClosed)
	require.ErrorIs(t, h.Wait(t.Context()), os.ErrClosed)
	alive, err := h.process.Alive()
	require.NoError(t, err)
	assert.True(t, alive)
}

func TestOpenWhereAsksUnderTheHold(t *testing.T) {
	t.Parallel()
	c := cat(t)
	pid := c.Process.Pid
	_, err := OpenWhere(pid, func() bool { return false })
	require.ErrorIs(t, err, ErrForeign)

	found := statOf(t, pid)
	found.StartTicks++
	_, err = Proc{}.Open(found)
	require.ErrorIs(t, err, ErrForeign, "another start time is another process")

	_, err = OpenWhere(pid, func() bool {
		_ = c.Process.Kill()
		_ = c.Wait()
		return true
	})
	require.ErrorIs(t, err, ErrDead, "it ended while the question was asked")
}

func TestNoDescriptorIsLeftBehind(t *testing.T) { //nolint:paralleltest // counts the descriptors of the whole process
	c := cat(t)
	found := statOf(t, c.Process.Pid)
	before := pidfds(t)
	for range 50 {
		h, err := Host().Open(found)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, h.Wait(ctx), context.Canceled)
		alive, err := h.process.Alive()
		require.NoError(t, err)
		assert.True(t, alive)
		require.NoError(t, h.Close())
		_, err = OpenWhere(found.PID, func() bool { return false })
		require.Error(t, err)
	}
	assert.LessOrEqual(t, pidfds(t), before)
}

// pidfds counts the open pidfds of this process.
func pidfds(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	n := 0
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.Contains(target, "pidfd") {
			n++
		}
	}
	return n
}

func statOf(t *testing.T, pid int) Stat {
	t.Helper()
	s, err := Host().Stat(pid)
	require.NoError(t, err)
	return s
}
