package monotask_test

import (
	"testing"

	"sbx/internal/testkit/monotasktest"
	"sbx/internal/testkit/wiretest"
)

func TestSilence(t *testing.T) {
	t.Parallel()
	wiretest.RunSilence(t, func(wt wiretest.T) wiretest.Subject {
		f := monotasktest.New(wt, monotasktest.Options{})
		return wiretest.Subject{Server: f.Server, P: dialled(wt, f), ID: f.Add(monotasktest.Box{}), Inside: []string{
			"GET /api/sandbox/{id}/logs", "GET /api/sandbox/{id}/resources",
		}}
	})
}
