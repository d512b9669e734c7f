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
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/dockertest"
	"sbx/internal/testkit/wiretest"
)

// TestADeadContainerIsNoOutage: whatever the engine says of one container, or does not say, calls to the others go on.
func TestADeadContainerIsNoOutage(t *testing.T) {
	t.Parallel()
	const one = "/v1.47/containers/{id}"
	runtime := wiretest.Fault{Status: http.StatusInternalServerError, Body: `{"message":"OCI runtime exec failed: container is dead"}`}
	for name, broken := range map[string]struct {
		answer wiretest.Fault
		routes []string
		state  string
	}{
		"its runtime fails":     {runtime, []string{"POST " + one + "/exec", "GET " + one + "/stats", "GET " + one + "/logs", "POST " + one + "/stop", "DELETE " + one}, ""},
		"its runtime hangs":     {wiretest.Fault{Trouble: wiretest.TroubleHang}, []string{"POST " + one + "/exec", "GET " + one + "/stats", "GET " + one + "/logs", "POST " + one + "/stop", "DELETE " + one}, ""},
		"it cannot be read":     {runtime, []string{"GET " + one + "/json"}, ""},
		"it has stopped":        {state: "exited"},
		"it is being restarted": {state: "restarting"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := dockertest.New(t, dockertest.Options{Virtual: true})
			dead, well := f.Add(dockertest.Seed{State: broken.state, Labels: map[string]string{sandbox.LabelRun: "main"}}), f.Add(dockertest.Seed{})
			broken.answer.Contains = dead
			f.BreakRoutes(broken.answer, broken.routes...)
			c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
			errs := map[string]error{}
			_, errs["usage"] = c.Usage(t.Context(), dead)
			_, errs["processes"] = c.Processes(t.Context(), dead)
			_, errs["exit"] = c.Exit(t.Context(), dead)
			_, errs["probe"] = c.Probe(t.Context(), dead)
			_, errs["exec"] = c.Exec(t.Context(), dead, providers.Command{Args: []string{"true"}})
			errs["terminate"] = c.Terminate(t.Context(), dead, providers.TerminateOptions{Delete: true})
			for _, err := range c.Logs(t.Context(), dead, providers.LogQuery{}) {
				errs["logs"] = err
			}
			for what, err := range errs {
				assert.False(t, fault.KindOf(err) == fault.KindUnavailable && !fault.AboutOneSandbox(err), "%s counts as an outage of the engine: %v", what, err)
			}
			_, err := c.Usage(t.Context(), well)
			require.NoError(t, err)
		})
	}
}

// TestAnEngineThatIsAwayIsAnOutage: what does not reach the engine is about all of its containers.
func TestAnEngineThatIsAwayIsAnOutage(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "away", func(t *testing.T) {
		f := dockertest.New(t, dockertest.Options{Virtual: true})
		id := f.Add(dockertest.Seed{})
		c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
		_, err := c.Get(t.Context(), id)
		require.NoError(t, err)
		f.Break(wiretest.Fault{Trouble: wiretest.TroubleHang})
		_, err = c.Usage(t.Context(), id)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
		assert.False(t, fault.AboutOneSandbox(err), "%v", err)
	})
}
