package docker_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/dockertest"
	"sbx/internal/testkit/wiretest"
)

// A read that fails before the stop is sent has asked for nothing: the end is tried again, also while the engine restarts.
func TestAReadBeforeAnEndIsNoRequest(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "engine restarts", func(t *testing.T) {
		f := dockertest.New(t, dockertest.Options{Virtual: true})
		c := dialed(t, f)
		defer c.Close()
		id := f.Add(dockertest.Seed{State: "created"})
		f.Break(wiretest.Fault{Route: "GET /v1.47/containers/{id}/json", After: 1, Times: 6, Trouble: wiretest.TroubleReset})
		got := ends(t, c, id, fleet.EndOptions{})
		assert.Equal(t, sandbox.OutcomeVerified, got.Outcome, "%s", got.Reason)
		assert.True(t, got.Request.Acknowledged)
		assert.Equal(t, 1, f.Changes())
	})
}
