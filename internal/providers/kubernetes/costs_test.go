package kubernetes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/kubernetestest"
)

// TestATaskNeedsTwoCommands: each is a connection to the node and a line in the audit log.
func TestATaskNeedsTwoCommands(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{})
	c := dialed(t, f)
	defer c.Close()
	made, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", "echo one; sleep 2; echo two; exit 3"}, Linger: true})
	require.NoError(t, err)
	over := make(chan []string)
	go func() {
		var lines []string
		for line, err := range c.Logs(t.Context(), made.ID, providers.LogQuery{Follow: true}) {
			if !assert.NoError(t, err) {
				break
			}
			lines = append(lines, line.Text)
		}
		over <- lines
	}()
	var exit *sandbox.Exit
	require.Eventually(t, func() bool { // a task asks twice a second, and more often at first, also before the output has begun
		var err error
		exit, err = c.Exit(t.Context(), made.ID)
		return err == nil && exit != nil
	}, time.Minute, 100*time.Millisecond)
	assert.Equal(t, 3, *exit.Code)
	assert.Equal(t, []string{"one", "two"}, <-over)
	assert.Len(t, f.Calls(execRoute), 2, "commands of a task: its start and its output")
}

// TestALookNeedsTwoCommands: what tells the exit tells whether a shell answers.
func TestALookNeedsTwoCommands(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{})
	c := dialed(t, f)
	defer c.Close()
	made, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", "echo one; exec sleep 600"}})
	require.NoError(t, err)
	before := len(f.Calls(execRoute))
	ctx := providers.Look(t.Context())
	health, err := c.Probe(ctx, made.ID)
	require.NoError(t, err)
	assert.Equal(t, sandbox.True, health.Verdict)
	exit, err := c.Exit(ctx, made.ID)
	require.NoError(t, err)
	assert.Nil(t, exit)
	for _, err := range c.Logs(ctx, made.ID, providers.LogQuery{}) {
		require.NoError(t, err)
	}
	assert.Equal(t, 2, len(f.Calls(execRoute))-before)
}
