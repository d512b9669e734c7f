package vercel_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/httpx"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/verceltest"
	"sbx/internal/testkit/wiretest"
)

const extendRoute = "POST /v2/sandboxes/sessions/{id}/extend-timeout"

func TestRefusedExtensions(t *testing.T) {
	t.Parallel()
	gone := wiretest.Fault{Status: http.StatusGone, Body: `{"error":{"code":"sandbox_stopped","message":"the sandbox is stopped"}}`}
	ends := wiretest.Fault{Status: http.StatusUnprocessableEntity, Body: `{"error":{"code":"sandbox_stopping","message":"the sandbox is stopping"}}`}
	for name, tc := range map[string]struct {
		seed  verceltest.Seed
		fault wiretest.Fault
		life  time.Duration
		kind  fault.Kind
		said  string
		calls int
	}{
		"beyond the plan": {life: 2 * time.Hour, kind: fault.KindRefused, said: "sandbox_timeout_invalid", calls: 1},
		"shorter":         {life: time.Minute, kind: fault.KindRefused, said: "is not later"},
		"stopped, with a snapshot": {
			seed: verceltest.Seed{Persistent: true, Status: "stopped", Snapshot: "created"}, life: time.Hour, kind: fault.KindRefused,
			said: "it is stopped",
		},
		"stopped for good":             {seed: verceltest.Seed{Status: "stopped"}, life: time.Hour, kind: fault.KindGone, said: "it has ended"},
		"it is stopping":               {fault: ends, life: 30 * time.Minute, kind: fault.KindRefused, said: "is stopping", calls: 1},
		"410, and the record says not": {fault: gone, life: 30 * time.Minute, kind: fault.KindUnavailable, said: "its record does not", calls: 1},
		"throttled": {
			fault: wiretest.TooMany(map[string]string{"Retry-After": "1"}), life: 30 * time.Minute, kind: fault.KindUnavailable, calls: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := verceltest.New(t, verceltest.Options{Longest: 45 * time.Minute})
			id := f.Add(tc.seed)
			if tc.fault.Status != 0 {
				f.BreakRoutes(tc.fault, extendRoute)
			}
			_, err := open(t, f.Listen(), httpx.Net{}).Extend(t.Context(), id, time.Now().Add(tc.life))
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			assert.Contains(t, err.Error(), tc.said)
			assert.Len(t, f.Calls(extendRoute), tc.calls, "the API adds each time that it is asked")
		})
	}
}

// TestALostAnswerAddsOnce: the API adds to the limit, so that a second request would add it again.
func TestALostAnswerAddsOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault wiretest.Fault
		kind  fault.Kind
		moved bool
	}{
		"after it was added":  {wiretest.Fault{Trouble: wiretest.TroubleReset, Late: true}, fault.KindNone, true},
		"502 after that":      {wiretest.Fault{Status: http.StatusBadGateway, Late: true}, fault.KindNone, true},
		"before it was added": {wiretest.Fault{Status: http.StatusBadGateway}, fault.KindUnavailable, false},
		"about another one":   {wiretest.Fault{Body: `{"session":{"id":"sbx_other","status":"running"}}`, Late: true}, fault.KindNone, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := verceltest.New(t, verceltest.Options{})
			id := f.Add(verceltest.Seed{})
			f.BreakRoutes(tc.fault, extendRoute)
			until := time.Now().Add(time.Hour)
			fl := fleet.New([]fleet.Member{{Provider: open(t, f.Listen(), httpx.Net{})}}, fleet.Options{})
			x, err := fl.Extend(t.Context(), sandbox.Ref{Provider: "prod", ID: id}, until)
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			assert.Len(t, f.Calls(extendRoute), 1)
			require.Equal(t, id, x.After.ID)
			assert.Equal(t, tc.moved, x.After.ExpiresAt.After(x.Before.ExpiresAt))
			if tc.moved {
				assert.WithinDuration(t, until, x.After.ExpiresAt, time.Second)
			}
		})
	}
}
