package docker_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/dockertest"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
)

// TestATaskNeedsTwoCommands: Podman keeps two processes for minutes for each command, and the memory of events of Docker's
// engine has room for some hundred commands of all containers.
func TestATaskNeedsTwoCommands(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]dockertest.Options{"docker": {}, "podman": {Podman: true, API: "1.41"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := dockertest.New(t, o)
			c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
			providertest.CheckTaskCommands(t, c, f.Commands)
		})
	}
}

// TestALookNeedsTwoCommands: the list of the processes tells whether a shell answers and the program runs.
func TestALookNeedsTwoCommands(t *testing.T) {
	t.Parallel()
	f := dockertest.New(t, dockertest.Options{})
	c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
	id := providertest.CheckLookCommands(t, c, c, f.Commands)
	requests := len(f.Calls("GET /v1.47/exec/{id}/json"))
	_, err := c.Processes(providers.Look(t.Context()), id)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(f.Calls("GET /v1.47/exec/{id}/json"))-requests, 1, "what sbx has run itself is not asked about")
}

// TestAFollowedLogEndsWithItsContainer: Podman has words of its own for a container that does not run.
func TestAFollowedLogEndsWithItsContainer(t *testing.T) {
	t.Parallel()
	f := dockertest.New(t, dockertest.Options{Podman: true, API: "1.41"})
	c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
	made, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", "echo one; sleep 600"}})
	require.NoError(t, err)
	for line, err := range c.Logs(t.Context(), made.ID, providers.LogQuery{Follow: true}) {
		require.NoError(t, err)
		assert.Equal(t, "one", line.Text)
		require.NoError(t, c.Terminate(t.Context(), made.ID, providers.TerminateOptions{}))
	}
}

// TestAContainerEndsBetweenTheTwoRequestsOfACommand: the engine refuses the start of a command that it has taken.
func TestAContainerEndsBetweenTheTwoRequestsOfACommand(t *testing.T) {
	t.Parallel()
	f := dockertest.New(t, dockertest.Options{API: "1.47"})
	c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
	made, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", "echo one; sleep 600"}})
	require.NoError(t, err)
	f.Break(wiretest.Fault{Route: "POST /v1.47/exec/{id}/start", Status: http.StatusConflict, Body: `{"message":"Container ` + made.ID + ` is not running"}`})
	for _, err := range c.Logs(t.Context(), made.ID, providers.LogQuery{Follow: true}) {
		assert.Equal(t, fault.KindGone, fault.KindOf(err), "%v", err)
	}
}
