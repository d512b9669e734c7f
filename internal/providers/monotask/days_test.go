package monotask_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/monotask"
	"sbx/internal/testkit/monotasktest"
	"sbx/internal/testkit/wiretest"
)

func TestBadDays(t *testing.T) {
	t.Parallel()
	wiretest.RunBadDays(t, func(wt wiretest.T) wiretest.Subject {
		f := monotasktest.New(wt, monotasktest.Options{})
		return wiretest.Subject{
			Server: f.Server, P: dialled(wt, f), ID: f.Add(monotasktest.Box{}), Rows: 1, Secrets: []string{monotasktest.Token},
			List: "GET /api/sandbox/list", Get: "GET /api/sandbox/{id}", Terminate: "DELETE /api/sandbox/{id}",
		}
	})
}

func dialled(t wiretest.T, f *monotasktest.Fake) providers.Provider {
	t.Helper()
	p, err := monotask.Type().Open(context.Background(), providers.Profile{Name: "mono", Settings: map[string]string{"url": "http://worker", "token": monotasktest.Token}},
		providers.Deps{Now: time.Now, Net: httpx.Net{Dial: f.Dial}})
	require.NoError(t, err)
	return p
}
