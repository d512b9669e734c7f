package kubernetes_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/wiretest"
)

// ends has a fleet end one sandbox of a client.
func ends(t *testing.T, c providers.Provider, id string, o fleet.EndOptions) sandbox.Ending {
	t.Helper()
	f := fleet.New([]fleet.Member{{Provider: c}}, fleet.Options{})
	for got := range f.Terminate(t.Context(), []sandbox.Sandbox{{Provider: "prod", ID: id, State: sandbox.StateRunning}}, o) {
		return got
	}
	t.Fatal("no outcome")
	return sandbox.Ending{}
}

// The garbage collector ends the pods of a controller with their own grace: that of the caller has to be sent to them.
func TestAGraceReachesThePods(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"pod", "job", "sandbox"} {
		bubble.Run(t, kind, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			id := f.Add(kubernetestest.Seed{Kind: kind, Stubborn: true, Grace: time.Hour})
			c := dialed(t, f)
			defer c.Close()
			got := ends(t, c, id, fleet.EndOptions{Grace: 5 * time.Second})
			assert.Equal(t, sandbox.OutcomeVerified, got.Outcome, "%s", got.Reason)
			assert.Less(t, got.Duration, 7*time.Second)
			assert.False(t, f.Runs(id))
		})
	}
}

// What ends with a long grace takes a shorter one, and what the caller's grace does not reach is waited for.
func TestWhatEndsAlreadyTakesAShorterGrace(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"pod", "job", "sandbox"} {
		bubble.Run(t, kind, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			id := f.Add(kubernetestest.Seed{Kind: kind, Stubborn: true, Grace: 10 * time.Minute})
			c := dialed(t, f)
			defer c.Close()
			require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Grace: time.Hour}))
			pass(10 * time.Second)
			now, err := c.Get(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, sandbox.StateTerminating, now.State)
			assert.WithinDuration(t, time.Now().Add(-10*time.Second), now.EndingAt, time.Second, "its end began when it was asked for")
			assert.Greater(t, time.Until(now.EndsBy), 9*time.Minute)
			got := ends(t, c, id, fleet.EndOptions{Grace: 15 * time.Second})
			assert.Equal(t, sandbox.OutcomeVerified, got.Outcome, "%s", got.Reason)
			assert.Less(t, got.Duration, 7*time.Second, "counted from the first request")
		})
	}
}

func TestAGraceThatIsNotReached(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		own, wait time.Duration
		outcome   sandbox.Outcome
		reason    string
		took      time.Duration
	}{
		"within two minutes": {time.Minute, 0, sandbox.OutcomeVerified, "", time.Minute},
		"beyond":             {10 * time.Minute, 0, sandbox.OutcomeAccepted, "own grace lets it; look again at ", 2 * time.Minute},
		"a wait that is set": {time.Minute, 5 * time.Second, sandbox.OutcomeAccepted, "own grace lets it; look again at ", 5 * time.Second},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			claim := f.Add(kubernetestest.Seed{Kind: "claim"})
			id := f.Add(kubernetestest.Seed{Kind: "sandbox", Owner: claim, Stubborn: true, Grace: tc.own})
			c := dialed(t, f)
			defer c.Close()
			got := ends(t, c, id, fleet.EndOptions{Grace: 5 * time.Second, Wait: tc.wait})
			assert.Equal(t, tc.outcome, got.Outcome, "%s", got.Reason)
			assert.Contains(t, got.Reason, tc.reason)
			assert.InDelta(t, tc.took.Seconds(), got.Duration.Seconds(), 3)
		})
	}
}

// A pod that was lost with its node is stuck, though its grace is over.
func TestAGraceThatIsOver(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "lost node", func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, LostNode: true})
		c := dialed(t, f)
		defer c.Close()
		got := ends(t, c, f.Add(kubernetestest.Seed{Kind: "job"}), fleet.EndOptions{Grace: 5 * time.Second})
		assert.Equal(t, sandbox.OutcomeStuck, got.Outcome)
		assert.Contains(t, got.Reason, "after 30s: its node "+kubernetestest.Node+" is not ready")
	})
}

// A DELETE whose answer was lost with the API server is proved by the record, the list of all pods and a ready node.
func TestADeleteThatTheServersDeathCutOff(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lost    wiretest.Fault
		node    bool // its node is lost afterwards
		outcome sandbox.Outcome
	}{
		"cut off":        {wiretest.Fault{Trouble: wiretest.TroubleReset, Late: true}, false, sandbox.OutcomeVerified},
		"a lost node":    {wiretest.Fault{Trouble: wiretest.TroubleReset, Late: true}, true, sandbox.OutcomeAccepted},
		"answered a 500": {wiretest.Fault{Status: http.StatusInternalServerError, Body: "{}", Late: true}, false, sandbox.OutcomeAccepted},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			id := f.Add(kubernetestest.Seed{})
			c := dialed(t, f)
			defer c.Close()
			tc.lost.Route, tc.lost.Times = "DELETE "+podsRoute+"/{name}", 1
			f.Break(tc.lost)
			if tc.node {
				f.Break(wiretest.Fault{Route: "GET /api/v1/nodes/{name}", Status: http.StatusForbidden, Body: "{}"})
			}
			got := ends(t, c, id, fleet.EndOptions{})
			assert.Equal(t, tc.outcome, got.Outcome, "%s", got.Reason)
		})
	}
}
