package launch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/ops/launch"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/testkit/opstest"
)

// TestAKeyIsFreedByWhatEndsUnrun: the runner of a task died before anything was made for it, and a sweep had no
// time to finish its end. A launch of its key does so, and then launches.
func TestAKeyIsFreedByWhatEndsUnrun(t *testing.T) {
	t.Parallel()
	place := opstest.NewSite(t, opstest.OneProfile, opstest.Prod())
	env := place.Env(t)
	c, err := env.Config()
	require.NoError(t, err)
	order := launch.Request{Config: c, Key: "k-1", Sandbox: sandbox.Spec{Command: []string{"true"}}}
	prepared, err := order.Prepare(t.Context(), env, &opstest.Recorder{})
	require.NoError(t, err)
	st, err := env.Store(true)
	require.NoError(t, err)
	ledger := task.Ledger{Store: st}
	_, _, err = ledger.Add(t.Context(), task.New("t-lost", "k-1", prepared.Spec, task.Owner{Host: "elsewhere", PID: 1, Who: "w"}, time.Now()))
	require.NoError(t, err)
	lost, err := ledger.Change(t.Context(), "t-lost", func(n *task.Task) error {
		n.SweepAfter = n.ReadAt.Add(time.Hour)
		if err := n.Conclude(n.Fence, task.Failed, task.ReasonLost, "its runner has died"); err != nil {
			return err
		}
		return n.ReleaseLease(n.Fence)
	})
	require.NoError(t, err)
	require.True(t, lost.EndsUnrun())
	require.NoError(t, st.Close())

	r := &opstest.Recorder{}
	l, err := launch.Launch(t.Context(), env, order, r, taskRecorder{output: func(sandbox.LogLine) {}})
	require.NoError(t, err)
	assert.Equal(t, task.Completed, l.Task.State)
	assert.Equal(t, "k-1~2", l.Task.Key)
	assert.Len(t, l.Task.Attempts, 1)
}
