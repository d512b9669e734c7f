package ops_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/check"
	"sbx/internal/config"
	"sbx/internal/notify"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/opstest"
)

// TestAlertWords: the words of the configuration are those of the rules and services.
func TestAlertWords(t *testing.T) {
	t.Parallel()
	assert.Equal(t, notify.Services(), config.NotifyServices())
	assert.Equal(t, notify.Severities(), config.NotifySeverities())
	for _, rule := range check.Alerts() {
		assert.Contains(t, config.NotifyLevels(), string(rule.Level))
		assert.Contains(t, config.NotifySeverities(), string(rule.Severity))
	}
}

// TestAlertOfATaskThatAnotherProcessSettles: its own process died before it could tell anybody.
func TestAlertOfATaskThatAnotherProcessSettles(t *testing.T) {
	t.Parallel()
	c := opstest.NewClockSite(t, opstest.OneProfile, fake.New(fake.Options{Name: "prod"}))
	r := &opstest.Recorder{Answer: func(ops.Question) bool { return true }}
	env := c.Start(t, "host-1")
	f, err := env.Only(t.Context())
	require.NoError(t, err)
	require.NoError(t, env.WithTasks(t.Context(), ops.TaskParts{Fleet: f}, func(st store.Store, o task.Options) error {
		work := task.New("t-k3v9x2mq7abc", "", task.Spec{Provider: "prod", Command: []string{"true"}, Attempts: 1, Limits: task.Limits{Deadline: time.Minute}}, task.Owner{Host: "host-1", PID: 7, Who: "ann"}, c.Clock())
		_, _, err := task.Ledger{Store: st}.Add(t.Context(), work)
		require.NoError(t, err)
		c.Pass(time.Hour)
		o.Alive = func(task.Owner) sandbox.Verdict { return sandbox.False }
		env.SweepTasks(t.Context(), r, o)
		env.SweepTasks(t.Context(), r, o)
		return nil
	}))
	env.SendNotifications(t.Context())
	sent := c.Messages(t)
	require.Len(t, sent, 1, "%v %v", r.Notes, r.Warnings)
	assert.Equal(t, "task t-k3v9x2mq7abc", sent[0].Key)
}
