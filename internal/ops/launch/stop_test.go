package launch_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops/launch"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/testkit/opstest"
)

// taskRecorder passes on that a program writes.
type taskRecorder struct{ output func(sandbox.LogLine) }

var _ launch.TaskObserver = taskRecorder{}

func (taskRecorder) Changed(task.Task)             {}
func (taskRecorder) Message(string)                {}
func (t taskRecorder) Output(line sandbox.LogLine) { t.output(line) }
func (taskRecorder) Close()                        {}

// TestAStopWithoutACommandLine: one process runs a task, another stops it.
func TestAStopWithoutACommandLine(t *testing.T) {
	t.Parallel()
	p := opstest.Prod()
	place := opstest.NewSite(t, opstest.OneProfile, p)
	running := &opstest.Recorder{}
	runner := place.Env(t)
	c, err := runner.Config()
	require.NoError(t, err)
	order := launch.Request{Config: c, Key: "k-1", Sandbox: sandbox.Spec{Command: []string{"sh", "-c", "echo up; sleep 100000"}}}
	up := make(chan struct{})
	show := taskRecorder{output: func(sandbox.LogLine) { close(up) }}
	type launched struct {
		*launch.Launched
		err error
	}
	over := make(chan launched, 1)
	go func() {
		l, err := launch.Launch(t.Context(), runner, order, running, show)
		over <- launched{l, err}
	}()
	select {
	case <-up:
	case l := <-over:
		require.FailNow(t, "the task ended before it was stopped", "%+v %v", l.Launched, l.err)
	}

	r := &opstest.Recorder{}
	env := place.Env(t)
	act, err := launch.PlanStop(t.Context(), env, launch.StopRequest{Tasks: []string{"k-1", "k-1", "t-none"}})
	assert.Equal(t, fault.KindNotFound, fault.KindOf(r.Does(t, act, err).Err))
	stopped := opstest.ItemsOf[launch.Stopped](r)
	require.Len(t, stopped, 2, "each word once")
	one, none := stopped[0], stopped[1]
	require.NoError(t, one.Err)
	assert.True(t, one.Forbidden)
	assert.True(t, one.Gone)
	assert.False(t, one.WasOver)
	assert.LessOrEqual(t, one.ForbiddenAfter, one.GoneAfter)
	assert.Equal(t, task.Stopped, one.Task.State)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(none.Err))
	assert.Equal(t, []launch.Forbidden{{Task: one.Task.ID, After: one.ForbiddenAfter}}, opstest.ItemsOf[launch.Forbidden](r))
	assert.Len(t, r.Items, 3)

	l := <-over
	require.NoError(t, l.err)
	assert.Equal(t, task.Stopped, l.Task.State)
	assert.Equal(t, one.Task.ID, l.Task.ID)
	assert.False(t, l.Task.VerifiedAt.IsZero())
	require.Len(t, l.Task.Attempts, 1)
	seen, err := p.Get(t.Context(), l.Task.Attempts[0].Sandbox)
	require.NoError(t, err)
	assert.True(t, seen.State.Ended(), seen.State)

	// Stopped once more, it was over before, and nothing is forbidden anew.
	twice := &opstest.Recorder{}
	act, err = launch.PlanStop(t.Context(), place.Env(t), launch.StopRequest{Tasks: []string{one.Task.ID}})
	require.NoError(t, twice.Does(t, act, err).Err)
	stopped = opstest.ItemsOf[launch.Stopped](twice)
	assert.True(t, stopped[0].WasOver)
	assert.True(t, stopped[0].Gone)
	assert.Len(t, twice.Items, 1)
	ended, errs := env.Runs().All(t.Context(), runs.VerbCleanup, 0)
	assert.Empty(t, errs)
	assert.Empty(t, ended, "a stop is no bulk run")
}
