package providertest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Costly is a provider at which each command in a sandbox has a price.
type Costly interface {
	providers.Launcher
	providers.LogReader
	providers.ExitReader
	providers.Prober
}

// CheckTaskCommands checks that a task whose output is followed and whose exit is asked for costs the
// command that starts it and the one that reads its output. A machine that is too busy to serve that stream in
// time makes the client open it again, so that one task of three has to need no more. commands counts those of a
// sandbox, or those since it was called last.
func CheckTaskCommands(t *testing.T, c Costly, commands func(id string) int) {
	t.Helper()
	var needed int
	for range 3 {
		if needed = commandsOfTask(t, c, commands); needed == 2 {
			return
		}
	}
	assert.Equal(t, 2, needed, "commands of a task: its start and its output")
}

func commandsOfTask(t *testing.T, c Costly, commands func(id string) int) int {
	t.Helper()
	made, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", "echo one; sleep 2; echo two; exit 3"}, KeepAfterExit: true})
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
	return commands(made.ID)
}

// CheckLookCommands checks that a look at a sandbox costs two commands, and says which sandbox it made. What
// lists processes, where something does, is asked first.
func CheckLookCommands(t *testing.T, c Costly, lister providers.ProcessLister, commands func(id string) int) (id string) {
	t.Helper()
	made, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", "echo one; exec sleep 600"}})
	require.NoError(t, err)
	before := commands(made.ID)
	ctx := providers.Look(t.Context())
	if lister != nil {
		_, err = lister.Processes(ctx, made.ID)
		require.NoError(t, err)
	}
	probe := func() {
		health, err := c.Probe(ctx, made.ID)
		require.NoError(t, err)
		assert.Equal(t, sandbox.True, health.Verdict)
	}
	probe()
	exit, err := c.Exit(ctx, made.ID)
	require.NoError(t, err)
	assert.Nil(t, exit)
	probe() // a look asks both at once
	for _, err := range c.Logs(ctx, made.ID, providers.LogQuery{}) {
		require.NoError(t, err)
	}
	assert.Equal(t, 2, commands(made.ID)-before)
	return made.ID
}
