package daytona_test

import (
	"net/http"
	"testing"

	"sbx/internal/httpx"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/daytonatest"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
)

// TestOneAnswerEndsTheLook of the proxy in front of a dead daemon, of no container and of no address, and a
// toolbox that hangs is asked once.
func TestOneAnswerEndsTheLook(t *testing.T) {
	t.Parallel()
	inside := []string{
		"POST /toolbox/{id}/process/execute", "GET /toolbox/{id}/process/session/entrypoint/logs", "GET /toolbox/{id}/system/metrics", "GET /toolbox/{id}/version",
	}
	for name, answer := range map[string]wiretest.Fault{
		"no daemon":    {Status: http.StatusBadGateway},
		"no container": {Status: http.StatusNotFound, Body: `{"message":"sandbox container not found"}`},
		"no address":   {Status: http.StatusBadRequest, Body: `{"message":"no IP address found. Is the Sandbox started?"}`},
		"silence":      {Trouble: wiretest.TroubleHang},
	} {
		for _, labels := range []map[string]string{nil, {sandbox.LabelRun: "main"}} {
			bubble.Run(t, name, func(t *testing.T) {
				f := daytonatest.New(t, daytonatest.Options{})
				id := f.Add(daytonatest.Seed{Labels: labels})
				f.BreakRoutes(answer, inside...)
				providertest.CheckDead(t, providertest.DeadSubject{
					P: open(t, "http://daytona/api", httpx.Net{Dial: f.Dial}), ID: id, Silent: name == "silence", All: f.Counter(), Inside: f.Counter(inside...),
				})
			})
		}
	}
}
