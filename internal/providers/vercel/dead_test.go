package vercel_test

import (
	"net/http"
	"testing"

	"sbx/internal/httpx"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/verceltest"
	"sbx/internal/testkit/wiretest"
)

// TestOneAnswerEndsTheLook that finds the session stopped, and one that hangs is asked once.
func TestOneAnswerEndsTheLook(t *testing.T) {
	t.Parallel()
	inside := []string{"POST /v2/sandboxes/sessions/{id}/cmd", "GET /v2/sandboxes/sessions/{id}/cmd/{cmd}/logs"}
	for name, answer := range map[string]wiretest.Fault{
		"stopped": {Status: http.StatusGone, Body: `{"error":{"code":"sandbox_stopped","message":"x"}}`},
		"silence": {Trouble: wiretest.TroubleHang},
	} {
		for _, tags := range []map[string]string{nil, {"sbx-owner": "alice"}} {
			bubble.Run(t, name, func(t *testing.T) {
				f := verceltest.New(t, verceltest.Options{})
				id := f.Add(verceltest.Seed{Tags: tags})
				f.BreakRoutes(answer, inside...)
				providertest.CheckDead(t, providertest.DeadSubject{
					P: open(t, "http://vercel", httpx.Net{Dial: f.Dial}), ID: id, Silent: name == "silence", All: f.Counter(), Inside: f.Counter(inside...),
				})
			})
		}
	}
}
