package monotask_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/monotask"
	"sbx/internal/providers/monotask/monotasktest"
	"sbx/internal/providers/wiretest"
)

func TestBadDays(t *testing.T) {
	t.Parallel()
	wiretest.RunBadDays(t, func(wt wiretest.T) wiretest.Subject {
		f := monotasktest.New(wt, monotasktest.Options{})
		p, err := monotask.Type().Open(t.Context(), providers.Profile{Name: "mono", Settings: map[string]string{"url": "http://worker", "token": monotasktest.Token}},
			providers.Deps{Now: time.Now, Net: httpx.Net{Dial: f.Dial}})
		require.NoError(wt, err)
		return wiretest.Subject{
			Server: f.Server, P: p, ID: f.Add(monotasktest.Box{}), Rows: 1, Secrets: []string{monotasktest.Token},
			List: "GET /api/sandbox/list", Get: "GET /api/sandbox/{id}", Terminate: "DELETE /api/sandbox/{id}",
		}
	})
}
