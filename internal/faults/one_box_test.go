package faults_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/policy"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/wiretest"
)

// TestATroubledSandboxPausesNoOther: what Daytona's proxy answers about one sandbox is no silence of the provider, however
// often: the breaker stays closed, and another sandbox is asked at once.
func TestATroubledSandboxPausesNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		kind   fault.Kind
		hint   string
	}{
		"no address":   {http.StatusBadRequest, `{"statusCode":400,"message":"no IP address found. Is the Sandbox started?","code":"BAD_REQUEST"}`, fault.KindGone, ""},
		"no container": {http.StatusNotFound, `{"statusCode":404,"message":"sandbox container not found","code":"NOT_FOUND"}`, fault.KindGone, "`sbx terminate --delete prod/"},
		"dead daemon":  {http.StatusBadGateway, "", fault.KindUnavailable, "`sbx inspect prod/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				on := onDaytona(t)
				f := fleet.New([]fleet.Member{{Provider: on.p}}, fleet.Options{})
				for _, route := range []string{on.inside["usage"], on.inside["exec"]} {
					on.server.Break(wiretest.Fault{Route: route, Contains: on.id, Status: c.status, Body: c.body})
				}
				ref := sandbox.Ref{Provider: "prod", ID: on.id}
				for range 2 * policy.OpensAfter {
					_, err := f.Usage(t.Context(), ref)
					require.Equal(t, c.kind, fault.KindOf(err), "%v", err)
					assert.True(t, fault.AboutOneSandbox(err), "%v", err)
					if c.hint != "" {
						assert.Contains(t, fault.HintOf(err), c.hint+on.id+"`")
					}
				}
				_, err := f.Usage(t.Context(), sandbox.Ref{Provider: "prod", ID: on.other})
				assert.NoError(t, err)
			})
		})
	}
}
