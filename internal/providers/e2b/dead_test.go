package e2b_test

import (
	"testing"
	"testing/synctest"

	"sbx/internal/sandbox"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
)

// TestOneAnswerEndsTheLook of a dead envd, and one that hangs is asked once.
func TestOneAnswerEndsTheLook(t *testing.T) {
	t.Parallel()
	inside := []string{
		"GET /health", "GET /metrics", "POST /process.Process/List", "POST /process.Process/Start", "POST /process.Process/Connect", "POST /process.Process/SendSignal",
	}
	for i := range 4 {
		silent, o := i%2 == 1, e2btest.Options{NoMetrics: i < 2, NoSamples: i >= 2}
		for _, labels := range []map[string]string{nil, {sandbox.LabelRun: "main"}} {
			synctest.Test(t, func(t *testing.T) {
				f := e2btest.New(t, o)
				id := f.Add(e2btest.Seed{Metadata: labels})
				s := providertest.DeadSubject{P: dialled(t, f), ID: id, Silent: silent, All: f.Counter(), Inside: f.Counter(inside...)}
				if !silent {
					f.CloseEnvd(id)
				} else {
					for _, route := range inside {
						f.Break(wiretest.Fault{Route: route, Trouble: wiretest.TroubleHang})
					}
				}
				providertest.CheckDead(t, s)
			})
		}
	}
}
