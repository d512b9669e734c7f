package kubernetes_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/kubernetestest"
)

// Nothing makes a job again that was deleted below a cron job; a replica set makes its pods again.
func TestAJobOfACronJobEnds(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	c := dialed(t, f)
	defer c.Close()
	id := f.Add(kubernetestest.Seed{Kind: "job", Owner: f.Add(kubernetestest.Seed{Kind: "cronjob", Name: "nightly"})})
	require.NoError(t, c.Rehearse(t.Context(), id, providers.TerminateOptions{}))
	assert.Equal(t, sandbox.OutcomeVerified, ends(t, c, id, fleet.EndOptions{}).Outcome)
	for kind, owner := range map[string]string{"pod": "replicaset", "job": "workflow"} {
		id := f.Add(kubernetestest.Seed{Kind: kind, Owner: f.Add(kubernetestest.Seed{Kind: owner, Name: "web"})})
		err := c.Terminate(t.Context(), id, providers.TerminateOptions{})
		assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%s: %v", owner, err)
	}
}
