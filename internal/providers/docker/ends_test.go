package docker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/dockertest"
	"sbx/internal/testkit/wiretest"
)

// ends has a fleet end one container of a client.
func ends(t *testing.T, c providers.Provider, id string, o fleet.EndOptions) sandbox.Ending {
	t.Helper()
	f := fleet.New([]fleet.Member{{Provider: c}}, fleet.Options{})
	for got := range f.Terminate(t.Context(), []sandbox.Sandbox{{Provider: "prod", ID: id, State: sandbox.StateRunning}}, o) {
		return got
	}
	t.Fatal("no outcome")
	return sandbox.Ending{}
}

// Podman stops nothing that is paused.
func TestAPausedContainerEnds(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]dockertest.Options{"docker": {Virtual: true}, "podman": {Virtual: true, Podman: true}} {
		for _, drop := range []bool{false, true} {
			bubble.Run(t, name, func(t *testing.T) {
				f := dockertest.New(t, o)
				id := f.Add(dockertest.Seed{State: "paused"})
				c := dialed(t, f)
				defer c.Close()
				got := ends(t, c, id, fleet.EndOptions{Delete: drop})
				assert.Equal(t, sandbox.OutcomeVerified, got.Outcome, "%s", got.Reason)
				assert.False(t, f.Runs(id))
			})
		}
	}
}

// A delete goes on where what is paused cannot be stopped at all.
func TestWhatCannotBeStoppedIsDeleted(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "no unpause", func(t *testing.T) {
		f := dockertest.New(t, dockertest.Options{Virtual: true, Podman: true})
		id := f.Add(dockertest.Seed{State: "paused"})
		c := dialed(t, f)
		defer c.Close()
		f.Break(wiretest.Fault{Route: "POST /v1.47/containers/{id}/unpause", Status: 500, Body: `{"message":"cannot thaw"}`})
		assert.Equal(t, sandbox.OutcomeFailed, ends(t, c, id, fleet.EndOptions{}).Outcome)
		assert.Equal(t, sandbox.OutcomeVerified, ends(t, c, id, fleet.EndOptions{Delete: true}).Outcome)
		assert.False(t, f.Runs(id))
	})
}

// A container with the policy "always" runs again when its engine restarts, whoever has stopped it.
func TestAnEndOutlivesTheEngine(t *testing.T) {
	t.Parallel()
	for name, podman := range map[string]bool{"docker": false, "podman": true} {
		bubble.Run(t, name, func(t *testing.T) {
			f := dockertest.New(t, dockertest.Options{Virtual: true, Podman: podman})
			c := dialed(t, f)
			defer c.Close()
			id := f.Add(dockertest.Seed{Restart: "always"})
			health, err := c.Probe(t.Context(), id)
			require.NoError(t, err)
			assert.Contains(t, texts(health.Evidence), "restart policy: always")
			planned, err := c.Get(t.Context(), id)
			require.NoError(t, err)
			assert.Contains(t, planned.EndNote, map[bool]string{false: "always becomes unless-stopped", true: "which this engine cannot change"}[podman])
			got := ends(t, c, id, fleet.EndOptions{})
			assert.Equal(t, sandbox.OutcomeVerified, got.Outcome, "%s", got.Reason)
			f.RestartEngine()
			assert.Equal(t, podman, f.Runs(id))
			assert.Equal(t, podman, got.Reason != "", "%s", got.Reason)
			if podman {
				assert.Contains(t, got.Reason, "restart policy is still always: it runs again when the engine restarts")
			}
		})
	}
}

func texts(all []sandbox.Evidence) []string {
	said := make([]string, 0, len(all))
	for _, e := range all {
		said = append(said, e.What+": "+e.Value)
	}
	return said
}

// What watches over a container starts it again at once: an end that is seen before that is none.
func TestWhatIsStartedAgainHasNotEnded(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "50 ms later", func(t *testing.T) {
		f := dockertest.New(t, dockertest.Options{Virtual: true})
		c := dialed(t, f)
		defer c.Close()
		got := ends(t, c, f.Add(dockertest.Seed{Watched: 50 * time.Millisecond}), fleet.EndOptions{})
		assert.Equal(t, sandbox.OutcomeAccepted, got.Outcome)
		assert.Contains(t, got.Reason, "still running after 30s: it was stopped, and something has started it again at ")
	})
}

// What has ended by its time limit stays with its disk, until somebody deletes it.
func TestWhatIsLeftIsCounted(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "two", func(t *testing.T) {
		f := dockertest.New(t, dockertest.Options{Virtual: true})
		c := dialed(t, f)
		defer c.Close()
		left := func() (messages []string) {
			for _, check := range c.Check(t.Context()) {
				if check.Check == "stopped containers" {
					messages = append(messages, check.Message)
				}
			}
			return messages
		}
		own := map[string]string{sandbox.LabelRun: "main"}
		f.Add(dockertest.Seed{State: "exited"})
		f.Add(dockertest.Seed{Labels: own})
		assert.Empty(t, left())
		f.Add(dockertest.Seed{State: "exited", Labels: own})
		assert.Equal(t, []string{"1 of sbx have ended, by --ttl or a stop, and keep their disks"}, left())
	})
}

// TestRequestsOfAnEnd: the read right before the request serves it, and the one that has shown the end the proof.
func TestRequestsOfAnEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		named, drop, own bool
		most             int
	}{
		"delete by id":       {false, true, false, 8},
		"delete by name":     {true, true, false, 8},
		"delete of sbx":      {false, true, true, 9},    // its image, whose labels it may have inherited
		"stop by id":         {false, false, false, 11}, // it has to stay down for half a second
		"stop of sbx, by id": {false, false, true, 7},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := dockertest.New(t, dockertest.Options{Virtual: true})
			seed := dockertest.Seed{Name: "agent"}
			if tc.own {
				seed.Labels = map[string]string{sandbox.LabelRun: "main"}
			}
			word := f.Add(seed)
			if tc.named {
				word = "agent"
			}
			c := dialed(t, f)
			defer c.Close()
			many := fleet.New([]fleet.Member{{Provider: c}}, fleet.Options{})
			found, err := many.Find(t.Context(), []string{"prod/" + word}, fleet.FindOptions{Destructive: true})
			require.NoError(t, err)
			for e := range many.Terminate(t.Context(), found, fleet.EndOptions{Delete: tc.drop, Grace: 5 * time.Second}) {
				assert.Equal(t, sandbox.OutcomeVerified, e.Outcome, "%s", e.Reason)
			}
			t.Logf("%d requests", len(f.Calls("")))
			assert.LessOrEqual(t, len(f.Calls("")), tc.most)
			assert.False(t, f.Runs(found[0].ID))
		})
	}
}

// What stops between the read right before the request and the request is not removed in place of being stopped.
func TestAContainerThatHasNotStartedIsReadAgain(t *testing.T) {
	t.Parallel()
	for state, reads := range map[string]int{"running": 1, "created": 2, "paused": 2} {
		bubble.Run(t, state, func(t *testing.T) {
			f := dockertest.New(t, dockertest.Options{Virtual: true})
			id := f.Add(dockertest.Seed{State: state})
			c := dialed(t, f)
			defer c.Close()
			seen, err := c.Get(t.Context(), id)
			require.NoError(t, err)
			require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Seen: &seen}))
			assert.Len(t, f.Calls("GET /v1.47/containers/{id}/json"), reads)
		})
	}
}
