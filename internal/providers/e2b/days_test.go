package e2b_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/wiretest"
)

func TestBadDays(t *testing.T) {
	t.Parallel()
	wiretest.RunBadDays(t, func(wt wiretest.T) wiretest.Subject {
		f := e2btest.New(wt, e2btest.Options{PageSize: 2})
		id := f.Add(e2btest.Seed{})
		f.Add(e2btest.Seed{})
		f.Add(e2btest.Seed{Paused: true})
		p, err := e2b.Type().Open(t.Context(), providers.Profile{Name: "prod", Settings: e2btest.Settings("http://e2b")},
			providers.Deps{Now: time.Now, Net: httpx.Net{Dial: f.Dial}})
		require.NoError(wt, err)
		return wiretest.Subject{
			Server: f.Server, P: p, ID: id, Rows: 3, First: 2, SecondBy: "nextToken=", Asked: 100, Marks: []string{"X-Next-Token", "X-Total-Running"}, Secrets: []string{e2btest.Key},
			List: "GET /v2/sandboxes", Get: "GET /sandboxes/{id}", Terminate: "DELETE /sandboxes/{id}",
			// A cloud without the second list has the first one, with running sandboxes only.
			Expect: map[string]fault.Kind{"list 404": fault.KindUnsupported},
		}
	})
}
