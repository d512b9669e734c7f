package e2b_test

import (
	"testing"

	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/wiretest"
)

// TestSilence: a stopped envd accepts connections and does not answer, and so may the API, in either dialect.
func TestSilence(t *testing.T) {
	t.Parallel()
	for _, kind := range []providers.Type{e2b.Type(), e2b.NovitaType()} {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			wiretest.RunSilence(t, func(wt wiretest.T) wiretest.Subject {
				f := e2btest.New(wt, e2btest.Options{Novita: kind.Name == e2b.NovitaTypeName})
				id := f.Add(e2btest.Seed{Metadata: map[string]string{sandbox.LabelRun: "main"}})
				return wiretest.Subject{Server: f.Server, P: dialledAs(wt, f, kind), ID: id, Inside: []string{
					"GET /health", "GET /metrics", "POST /process.Process/Start", "POST /process.Process/Connect", "POST /process.Process/SendSignal",
				}}
			})
		})
	}
}

func TestLosses(t *testing.T) {
	t.Parallel()
	wiretest.RunLosses(t, func(t *testing.T) wiretest.Subject {
		t.Helper()
		f := e2btest.New(t, e2btest.Options{})
		return wiretest.Subject{Server: f.Server, P: open(t, f, e2b.Type()), Inside: []string{"POST /process.Process/Start", "GET /metrics"}}
	})
}

func TestRefusedCreates(t *testing.T) {
	t.Parallel()
	wiretest.RunRefusals(t, func(wt wiretest.T) wiretest.Subject {
		f := e2btest.New(wt, e2btest.Options{})
		return wiretest.Subject{Server: f.Server, P: dialled(wt, f), Create: "POST /sandboxes"}
	})
}
