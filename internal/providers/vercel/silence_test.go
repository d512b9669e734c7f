package vercel_test

import (
	"testing"

	"sbx/internal/httpx"
	"sbx/internal/testkit/verceltest"
	"sbx/internal/testkit/wiretest"
)

func TestSilence(t *testing.T) {
	t.Parallel()
	wiretest.RunSilence(t, func(wt wiretest.T) wiretest.Subject {
		f := verceltest.New(wt, verceltest.Options{})
		id := f.Add(verceltest.Seed{Tags: map[string]string{"sbx-owner": "alice"}})
		return wiretest.Subject{Server: f.Server, P: open(wt, "http://vercel", httpx.Net{Dial: f.Dial}), ID: id, Inside: []string{
			"POST /v2/sandboxes/sessions/{id}/cmd", "GET /v2/sandboxes/sessions/{id}/cmd", "GET /v2/sandboxes/sessions/{id}/cmd/{cmd}",
			"GET /v2/sandboxes/sessions/{id}/cmd/{cmd}/logs", "POST /v2/sandboxes/sessions/{id}/cmd/{cmd}/kill", "POST /v2/sandboxes/sessions/{id}/fs/write",
		}}
	})
}

func TestLosses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]verceltest.Options{"commands": {}, "commands that end at once": {Quick: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wiretest.RunLosses(t, func(t *testing.T) wiretest.Subject {
				t.Helper()
				f := verceltest.New(t, o)
				return wiretest.Subject{Server: f.Server, P: open(t, f.Listen(), httpx.Net{}), Inside: []string{"POST /v2/sandboxes/sessions/{id}/cmd"}}
			})
		})
	}
}

func TestRefusedCreates(t *testing.T) {
	t.Parallel()
	wiretest.RunRefusals(t, func(wt wiretest.T) wiretest.Subject {
		f := verceltest.New(wt, verceltest.Options{})
		return wiretest.Subject{Server: f.Server, P: open(wt, "http://vercel", httpx.Net{Dial: f.Dial}), Create: "POST /v2/sandboxes"}
	})
}
