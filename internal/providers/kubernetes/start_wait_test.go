package kubernetes_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/wiretest"
)

// An API server that has just started has not read its roles, and refuses what the account may do.
func TestAServerThatStartsRefusesForAMoment(t *testing.T) {
	t.Parallel()
	starts := wiretest.Fault{Status: http.StatusForbidden, Body: `{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"` +
		jsonText(`pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "agents": RBAC: clusterrole.rbac.authorization.k8s.io "edit" not found`) + `"}`}
	for name, tc := range map[string]struct {
		idle time.Duration // since the last call that worked
		kind fault.Kind
	}{
		"after a call that worked": {30 * time.Second, fault.KindUnavailable},
		"long after one":           {2 * time.Minute, fault.KindAuth},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			c := dialed(t, f)
			defer c.Close()
			id := f.Add(kubernetestest.Seed{})
			_, err := c.Get(t.Context(), id)
			require.NoError(t, err)
			pass(tc.idle)
			f.Break(starts)
			_, err = c.Get(t.Context(), id)
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			_, err = c.Exec(t.Context(), id, providers.Command{Args: []string{"true"}})
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
		})
	}
	bubble.Run(t, "first call", func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
		c := dialed(t, f)
		defer c.Close()
		f.Break(starts)
		_, err := c.Get(t.Context(), f.Add(kubernetestest.Seed{}))
		assert.Equal(t, fault.KindAuth, fault.KindOf(err), "%v", err)
	})
	bubble.Run(t, "an end", func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
		c := dialed(t, f)
		defer c.Close()
		once := starts
		once.Route, once.Times = "DELETE "+podsRoute+"/{name}", 5
		f.Break(once)
		got := ends(t, c, f.Add(kubernetestest.Seed{}), fleet.EndOptions{})
		assert.Equal(t, sandbox.OutcomeVerified, got.Outcome, "it is sent again: %s", got.Reason)
	})
}
