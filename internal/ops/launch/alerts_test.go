package launch_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/ops"
	"sbx/internal/ops/launch"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/testkit/opstest"
)

// TestAlertOfATask: a task that failed tells once, and one that was stopped or completed, or that a
// person watches, tells nobody.
func TestAlertOfATask(t *testing.T) {
	t.Parallel()
	c := opstest.NewClockSite(t, opstest.OneProfile)
	end := func(state task.State, tty bool) {
		r := &opstest.Recorder{}
		env := c.Start(t, "host-1")
		if tty {
			r.Answer = func(ops.Question) bool { return true }
		}
		ended := task.Task{ID: "t-" + string(state), State: state, Attempts: []task.Attempt{{N: 1, Provider: "prod", Sandbox: "box1", Exit: &task.Exit{Class: sandbox.ClassOOM, Cause: sandbox.CauseOOM}}}}
		_, err := launch.RunControlled(t.Context(), env, r, task.Ledger{}, task.Task{}, func() (task.Task, error) { return ended, nil })
		require.NoError(t, err)
		env.SendNotifications(t.Context())
		assert.Empty(t, r.Warnings)
	}
	end(task.Completed, false)
	end(task.Stopped, false)
	end(task.Failed, true)
	assert.Empty(t, c.Said(t))
	end(task.Failed, false)
	end(task.TimedOut, false)
	assert.Equal(t, []string{"failed host-1", "failed host-1"}, c.Said(t))
	m := c.Messages(t)[0]
	assert.Equal(t, []string{"warning", "task t-failed"}, []string{m.Severity, m.Key})
	assert.Equal(t, "prod/box1", m.Items[0].Ref)
	assert.Equal(t, []string{"sbx tasks show t-failed"}, m.Next)
}

// TestAlertOfABatch: the tasks of one process that failed make one message, with those that nobody
// has told of because their process died.
func TestAlertOfABatch(t *testing.T) {
	t.Parallel()
	c := opstest.NewClockSite(t, opstest.OneProfile)
	r := &opstest.Recorder{}
	env := c.Start(t, "host-1")
	for i := range 30 {
		ended := task.Task{ID: fmt.Sprintf("t-failed%02d", i), State: task.Failed, Attempts: []task.Attempt{{N: 1, Provider: "prod", Sandbox: "box1", Exit: &task.Exit{Class: sandbox.ClassOOM, Cause: sandbox.CauseOOM}}}}
		_, err := launch.RunControlled(t.Context(), env, r, task.Ledger{}, task.Task{}, func() (task.Task, error) { return ended, nil })
		require.NoError(t, err)
	}
	env.SendNotifications(t.Context())
	env.SendNotifications(t.Context())
	sent := c.Messages(t)
	require.Len(t, sent, 1)
	assert.Equal(t, "sbx: 30 tasks failed", sent[0].Title)
	assert.Len(t, sent[0].Items, 20)
	assert.Equal(t, 10, sent[0].More)
	assert.Equal(t, []string{"sbx tasks --state failed,timed_out", "sbx tasks show t-failed00"}, sent[0].Next)
}
