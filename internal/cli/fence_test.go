//go:build unix

package cli_test

import (
	"context"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fenceRuns is how often each publisher is frozen: SBX_FENCE_RUNS, or a few.
func fenceRuns(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SBX_FENCE_RUNS")
	if text == "" {
		return 5
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
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
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
