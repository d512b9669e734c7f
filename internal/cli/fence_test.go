//go:build unix

package cli_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

// fenceRuns is how often each publisher is frozen: SBX_FENCE_RUNS (the stage `fence` says 200), or twice:
// TestEveryInterleaving of the room task freezes one at each point in virtual time.
func fenceRuns(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SBX_FENCE_RUNS")
	if text == "" {
		return 2
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	require.Positive(t, n)
	return n
}

// sleeper launches the task k with a push and returns when its publisher is frozen at
// the point. wake lets it go on and gives its exit status.
func (h machine) sleeper(t *testing.T, point string) (wake func() int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), tiertest.Limit(t))
	cmd := h.command(ctx, []string{"SBX_TEST_FREEZE_AT=" + point}, h.run(true)...)
	require.NoError(t, cmd.Start())
	over, code := make(chan struct{}), 0
	go func() {
		defer close(over)
		code = codeOf(cmd.Wait())
	}()
	t.Cleanup(func() {
		stop() // kills it, frozen or not
		<-over
	})
	require.True(t, freezes(cmd.Process.Pid, over), "it does not freeze at %s", point)
	return func() int {
		assert.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
		<-over
		return code
	}
}

// TestAFrozenPublisherPublishesNothing freezes a publisher right before the gate, or
// between the gate and the push, where no store can hold it any more. A stop from
// another process is acknowledged; then the publisher wakes up. Its branch must not
// be there.
func TestAFrozenPublisherPublishesNothing(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before the gate", "gate"} {
		for n := range fenceRuns(t) {
			t.Run(point+" "+strconv.Itoa(n), func(t *testing.T) {
				t.Parallel()
				h := newMachine(t)
				wake := h.sleeper(t, point)
				code, out, errs := h.sbx(t, nil, "stop", "k")
				require.Zero(t, code, errs)
				assert.Regexp(t, `\At-\w+: will not publish \([0-9.]+s\)\nt-\w+: gone \([0-9.]+s\)\n\z`, out)
				stopped := h.report(t)
				assert.Equal(t, "stopped", stopped.State)
				assert.Equal(t, 130, wake())
				assert.Equal(t, stopped, h.report(t), "who was stopped wrote on")
				assert.Empty(t, h.ref("refs/heads/work"), "the stop was acknowledged, and the branch is there")
				assert.Equal(t, map[string]int{"gate": 1}[point], h.fences(t))
				assert.NotEqual(t, "published", h.truth(t, true).Publish.State)
			})
		}
	}
}

// slowGit stands in for git: a push to a remote waits until the file go is there, so
// that a publisher is held up behind all of its own looks, with nothing left between it
// and the branch but the remote.
const slowGit = `#!/bin/sh
here=$(dirname "$(dirname "$0")")
for word in "$@"; do
	case $word in *[0-9a-f]:refs/heads/work)
		touch "$here/pushing"
		until test -e "$here/go"; do sleep 0.02; done ;;
	esac
done
exec "$(cat "$here/real")" "$@"
`

// TestAPushUnderWayIsHeldBack stops a task whose push has been started and hangs. The
// stop is acknowledged; then the push goes on. Only the remote can hold it back.
func TestAPushUnderWayIsHeldBack(t *testing.T) {
	t.Parallel()
	for n := range fenceRuns(t) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			h := newMachine(t)
			git, err := exec.LookPath("git")
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(h.dir, "real"), []byte(git), 0o600))
			require.NoError(t, os.Mkdir(filepath.Join(h.dir, "bin"), 0o700))
			require.NoError(t, writeProgram(filepath.Join(h.dir, "bin", "git"), slowGit))
			ctx, stop := context.WithTimeout(t.Context(), tiertest.Limit(t))
			defer stop()
			cmd := h.command(ctx, nil, h.run(true)...)
			cmd.Env = append(cmd.Env, "PATH="+filepath.Join(h.dir, "bin")+":"+os.Getenv("PATH"))
			require.NoError(t, cmd.Start())
			over, code := make(chan struct{}), 0
			go func() {
				defer close(over)
				code = codeOf(cmd.Wait())
			}()
			require.Eventually(t, h.has("pushing"), tiertest.Limit(t), 10*time.Millisecond, "it does not come to push")
			stopped, out, errs := h.sbx(t, nil, "stop", "k")
			require.Zero(t, stopped, errs)
			assert.Contains(t, out, "will not publish")
			require.NoError(t, os.WriteFile(filepath.Join(h.dir, "go"), nil, 0o600))
			<-over
			assert.Equal(t, 130, code)
			assert.Empty(t, h.ref("refs/heads/work"), "the stop was acknowledged, and the branch is there")
			assert.Equal(t, "stopped", h.truth(t, true).State)
		})
	}
}

func (h machine) has(file string) func() bool {
	return func() bool {
		_, err := os.Stat(filepath.Join(h.dir, file))
		return err == nil
	}
}

// TestAFrozenPublisherGoesOn is the other half: without a stop the same publisher
// wakes up and publishes, so that what is tested above can fail.
func TestAFrozenPublisherGoesOn(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before the gate", "gate"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			h := newMachine(t)
			wake := h.sleeper(t, point)
			assert.Empty(t, h.ref("refs/heads/work"))
			assert.Zero(t, wake())
			assert.Equal(t, "published", h.truth(t, true).Publish.State)
			code, out, _ := h.sbx(t, nil, "stop", "k")
			assert.Equal(t, 11, code, out)
		})
	}
}

// writeProgram writes an executable file. No fork may happen while it is open: the
// child would hold it open for writing, and nobody could run it ("text file busy").
func writeProgram(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o700)
}
