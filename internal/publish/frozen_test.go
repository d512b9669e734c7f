//go:build unix

package publish

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// freezes is how often a publisher is frozen: SBX_FENCE_RUNS, or 5, of which one is not stopped.
func freezes() int {
	if n, err := strconv.Atoi(os.Getenv("SBX_FENCE_RUNS")); err == nil {
		return n
	}
	return 5
}

const (
	wasStopped   = 40
	wasPublished = 41
	wasElse      = 42
)

// TestFrozenPublisher is the publisher itself when the test below starts it: it passes its
// last read, stops its own process, and continues when it is woken, like one on a suspended
// machine.
func TestFrozenPublisher(t *testing.T) { //nolint:paralleltest // it stops the whole process
	remote := os.Getenv("SBX_TEST_FROZEN_REMOTE")
	if remote == "" {
		t.Skip("started by TestStopWhileThePublisherIsFrozen")
	}
	g := &Git{Environ: operator(filepath.Dir(remote)), Dir: t.TempDir(), beforePush: func() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }}
	_, err := g.Publish(t.Context(), Push{
		Task: os.Getenv("SBX_TEST_FROZEN_TASK"), Fence: 7, Bundle: os.Getenv("SBX_TEST_FROZEN_BUNDLE"),
		Target: Target{Remote: remote, Branch: "agent/" + os.Getenv("SBX_TEST_FROZEN_TASK")},
	})
	switch {
	case err == nil:
		os.Exit(wasPublished)
	case errors.Is(err, ErrStopped):
		os.Exit(wasStopped)
	default:
		t.Log(err)
		os.Exit(wasElse)
	}
}

func TestStopWhileThePublisherIsFrozen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("work")
	bundle := w.collect(w.base)
	for i := range freezes() {
		task := "t" + strconv.Itoa(i)
		there := w.target("agent/" + task)
		cmd := exec.Command(os.Args[0], "-test.run=^TestFrozenPublisher$")
		cmd.Env = append(os.Environ(), "SBX_TEST_FROZEN_REMOTE="+w.remote, "SBX_TEST_FROZEN_TASK="+task, "SBX_TEST_FROZEN_BUNDLE="+bundle, "TMPDIR="+t.TempDir()) // it exits without removing what it made
		require.NoError(t, cmd.Start())
		pid := cmd.Process.Pid
		require.True(t, waitFor(t, pid).Stopped(), "it freezes before its push")
		stopped := i%5 != 4 // one in five is not stopped, so that the test can fail
		if stopped {
			m, err := w.git.ForbidPublish(t.Context(), task, there, "ann", w.git.Now())
			require.NoError(t, err)
			require.Equal(t, Stopped, m.Verdict)
		}
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
		status := waitFor(t, pid)
		require.True(t, status.Exited())
		if !stopped {
			assert.Equal(t, wasPublished, status.ExitStatus(), "run %d", i)
			assert.Equal(t, w.head(), w.at("refs/heads/agent/"+task))
			continue
		}
		assert.Equal(t, wasStopped, status.ExitStatus(), "run %d", i)
		assert.Empty(t, w.at("refs/heads/agent/"+task), "run %d", i)
	}
}

// waitFor waits until a child has stopped or ended.
func waitFor(t *testing.T, pid int) syscall.WaitStatus {
	t.Helper()
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		if !errors.Is(err, syscall.EINTR) {
			require.NoError(t, err)
			return status
		}
	}
}

// Later still: git has read the refs, its own check of the lease has passed, and the push
// is frozen on the line. The remote itself compares.
func TestStopWhileThePushIsOnTheLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.work("t1", "agent/t1")
	local := p.Target
	h := &host{}
	h.pushing = func() {
		m, err := w.git.ForbidPublish(t.Context(), "t1", local, "ann", w.git.Now())
		assert.True(t, err == nil && m.Verdict == Stopped, "%+v, %v", m, err) // on the server's goroutine
	}
	p.Target.Remote = w.serve(h).url
	_, err := w.git.Publish(t.Context(), p)
	require.ErrorIs(t, err, ErrStopped)
	assert.Empty(t, w.at("refs/heads/agent/t1"))
}
