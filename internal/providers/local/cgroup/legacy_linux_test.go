package cgroup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

// real1 is the same machine without its v2 tree: what a v1-only host gives.
func real1(t *testing.T) Host {
	t.Helper()
	h := realHost(t)
	if h.legacyHierarchy("memory") == nil {
		t.Skip("no v1 memory controller here")
	}
	h.unified = nil
	return h
}

func TestLegacyKillOutrunsForks(t *testing.T) {
	t.Parallel()
	g := realGroup(t, real1(t), Limits{PIDs: 60, MemoryBytes: 256 << 20})
	require.Equal(t, "cgroup1", string(g.Enforcement()))
	assert.Equal(t, -1, g.FD())
	start(t, g, "sh", "-c", "trap '' TERM; f() { while :; do sleep 0.01 & done; }; f & f & f")
	require.Eventually(t, func() bool {
		pids, err := g.PIDs()
		return err == nil && len(pids) > 20
	}, tiertest.Limit(t), 2*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), tiertest.Limit(t))
	defer cancel()
	n, err := g.Kill(ctx)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, n, 4, "the forkers themselves; their children come and go")
	s := g.Stats()
	assert.Zero(t, *s.PIDs)
	if s.CPUSeconds != nil {
		assert.Positive(t, *s.CPUSeconds)
	}
	require.NoError(t, g.Remove())
}

func TestVisitingThreadIsNoMember(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]func(*testing.T) Host{"as it is": realHost, "v1 alone": real1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := realGroup(t, host(t), Limits{})
			if len(g.legacyDirs()) == 0 {
				t.Skip("no v1 directory to visit")
			}
			var n int
			var text []byte
			var errs [3]error
			onThread(func() bool {
				errs[0] = g.JoinThread()
				text, errs[1] = os.ReadFile(filepath.Join(g.legacyDirs()[0].Path, "cgroup.procs"))
				n, errs[2] = g.Kill(t.Context())
				return false // the end of the thread takes it out of the group
			})
			require.NoError(t, errors.Join(errs[:]...), "and the test lives to tell")
			assert.Contains(t, parsePIDs(string(text)), os.Getpid(), "the kernel lists the visitor")
			assert.Zero(t, n)
			require.NoError(t, g.Remove())
		})
	}
}

func TestFirstThreadIsRefused(t *testing.T) {
	t.Parallel()
	g := realGroup(t, real1(t), Limits{})
	// Goroutines that each hold a thread: sooner or later one holds the first.
	release := make(chan struct{})
	defer close(release)
	refused := make(chan error)
	for range 256 {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var err error
			if threadID() == os.Getpid() {
				err = g.JoinThread()
			}
			refused <- err
			<-release
		}()
		if err := <-refused; err != nil {
			require.ErrorIs(t, err, ErrMainThread)
			return
		}
	}
	t.Skip("the first thread never came by")
}

func TestVisitorFromAnotherProcessIsSpared(t *testing.T) {
	t.Parallel()
	g := realGroup(t, real1(t), Limits{})
	p := start(t, g, "sleep", "60")
	// The parent of this test stands for a process with a visiting thread.
	members, err := g.dropPartialMembers(g.Paths()[0], []int{os.Getppid(), p.Pid})
	require.NoError(t, err)
	assert.Equal(t, []int{p.Pid}, members, "a process whose first thread is elsewhere is never signalled")
}

func TestZombiesHoldNothing(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]func(*testing.T) Host{"as it is": realHost, "v1 alone": real1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := realGroup(t, host(t), Limits{MemoryBytes: 64 << 20})
			p := start(t, g, "sleep", "60")
			n, err := g.Kill(t.Context())
			require.NoError(t, err, "an unreaped child is dead")
			assert.Equal(t, 1, n)
			require.NoError(t, g.Remove(), "and does not keep the group")
			_, err = p.Wait()
			require.NoError(t, err)
		})
	}
}

func TestFrozenIsKilled(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]func(*testing.T) Host{"as it is": realHost, "v1 alone": real1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := realGroup(t, host(t), Limits{})
			start(t, g, "sh", "-c", "while :; do :; done")
			if err := g.requestFrozen(true); errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			} else {
				require.NoError(t, err)
			}
			n, err := g.Kill(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 1, n)
		})
	}
}
