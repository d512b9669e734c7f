package daytona_test

import (
	"testing"

	"sbx/internal/httpx"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/daytonatest"
	"sbx/internal/testkit/wiretest"
)

func TestSilence(t *testing.T) {
	t.Parallel()
	wiretest.RunSilence(t, func(wt wiretest.T) wiretest.Subject {
		f := daytonatest.New(wt, daytonatest.Options{})
		id := f.Add(daytonatest.Seed{Labels: map[string]string{sandbox.LabelRun: "main"}})
		return wiretest.Subject{Server: f.Server, P: open(wt, "http://daytona/api", httpx.Net{Dial: f.Dial}), ID: id, Inside: []string{
			"POST /toolbox/{id}/process/execute", "GET /toolbox/{id}/process/session/entrypoint/logs", "GET /toolbox/{id}/system/metrics", "GET /toolbox/{id}/version",
		}}
	})
}

func TestLosses(t *testing.T) {
	t.Parallel()
	wiretest.RunLosses(t, func(t *testing.T) wiretest.Subject {
		t.Helper()
		f := daytonatest.New(t, daytonatest.Options{})
		return wiretest.Subject{Server: f.Server, P: open(t, f.Listen(), httpx.Net{}), Inside: []string{"POST /toolbox/{id}/process/execute", "GET /toolbox/{id}/system/metrics"}}
	})
}

func TestRefusedCreates(t *testing.T) {
	t.Parallel()
	wiretest.RunRefusals(t, func(wt wiretest.T) wiretest.Subject {
		f := daytonatest.New(wt, daytonatest.Options{})
		return wiretest.Subject{Server: f.Server, P: open(wt, "http://daytona/api", httpx.Net{Dial: f.Dial}), Create: "POST /api/sandbox"}
	})
}
