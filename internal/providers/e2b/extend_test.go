package e2b_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/wiretest"
)

const timeoutRoute = "POST /sandboxes/{id}/timeout"

func extender(t *testing.T, f *e2btest.Fake, kind providers.Type) providers.Extender {
	t.Helper()
	e, ok := providers.As[providers.Extender](open(t, f, kind))
	require.True(t, ok)
	return e
}

// TestRefusedTimeLimits: what the API refuses for good is refused, and what does not run is not asked for. Nothing is
// connected, which would resume it.
func TestRefusedTimeLimits(t *testing.T) {
	t.Parallel()
	for _, kind := range []providers.Type{e2b.Type(), e2b.NovitaType()} {
		for name, tc := range map[string]struct {
			seed   e2btest.Seed
			breaks wiretest.Fault
			life   time.Duration
			kind   fault.Kind
			said   string
			calls  int
		}{
			"beyond the plan": {life: 26 * time.Hour, kind: fault.KindRefused, said: "Timeout cannot be greater than 24 hours", calls: 1},
			"paused":          {seed: e2btest.Seed{Paused: true}, life: 2 * time.Hour, kind: fault.KindRefused, said: "it is paused"},
			"shorter":         {life: time.Minute, kind: fault.KindRefused, said: "is not later"},
			"paused meanwhile": {
				breaks: wiretest.Fault{Status: http.StatusConflict, Body: `{"code":409,"message":"Sandbox is not running"}`}, life: 2 * time.Hour,
				kind: fault.KindRefused, said: "not running", calls: 1,
			},
			"gone meanwhile":       {breaks: wiretest.Status(http.StatusNotFound), life: 2 * time.Hour, kind: fault.KindNotFound, calls: 1},
			"an error":             {breaks: wiretest.Status(http.StatusInternalServerError), life: 2 * time.Hour, kind: fault.KindUnavailable, calls: 1},
			"the key has no right": {breaks: wiretest.Status(http.StatusForbidden), life: 2 * time.Hour, kind: fault.KindAuth, calls: 1},
		} {
			t.Run(kind.Name+" "+name, func(t *testing.T) {
				t.Parallel()
				f := e2btest.New(t, e2btest.Options{MaxHours: 24, Novita: kind.Name == e2b.NovitaTypeName})
				id := f.Add(tc.seed)
				if tc.breaks.Status != 0 {
					tc.breaks.Route = timeoutRoute
					f.Break(tc.breaks)
				}
				_, err := extender(t, f, kind).Extend(t.Context(), id, time.Now().Add(tc.life))
				assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
				assert.Contains(t, err.Error(), tc.said)
				assert.Len(t, f.Calls(timeoutRoute), tc.calls, "a request is sent once, or not at all")
				assert.Empty(t, f.Calls("POST /sandboxes/{id}/connect"))
			})
		}
	}
}

// TestALostAnswerToATimeLimitIsNotAskedAgain: it may have had its effect, which a read shows.
func TestALostAnswerToATimeLimitIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	f := e2btest.New(t, e2btest.Options{})
	id := f.Add(e2btest.Seed{Left: time.Minute})
	f.Break(wiretest.Fault{Route: timeoutRoute, Trouble: wiretest.TroubleReset, Late: true})
	was, err := extender(t, f, e2b.Type()).Extend(t.Context(), id, time.Now().Add(time.Hour))
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
	assert.Equal(t, id, was.ID, "what was read before is known")
	assert.Len(t, f.Calls(timeoutRoute), 1)
}

// TestALifeIsNotCountedFromAnUnknownTime: without the time of the API a longer life may be a shorter one. Its clock may
// be hours off, too.
func TestALifeIsNotCountedFromAnUnknownTime(t *testing.T) {
	t.Parallel()
	f := e2btest.New(t, e2btest.Options{})
	id := f.Add(e2btest.Seed{Left: time.Minute})
	f.Break(wiretest.Fault{HeaderFunc: func() map[string]string { return map[string]string{"Date": "today"} }})
	_, err := extender(t, f, e2b.Type()).Extend(t.Context(), id, time.Now().Add(time.Hour))
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
	assert.Empty(t, f.Calls(timeoutRoute))

	ahead := 2 * time.Hour
	f = e2btest.New(t, e2btest.Options{Now: func() time.Time { return time.Now().Add(ahead) }})
	id = f.Add(e2btest.Seed{Left: time.Minute})
	f.Break(wiretest.Fault{HeaderFunc: func() map[string]string {
		return map[string]string{"Date": time.Now().Add(ahead).UTC().Format(http.TimeFormat)}
	}})
	p := open(t, f, e2b.Type())
	e, _ := providers.As[providers.Extender](p)
	_, err = e.Extend(t.Context(), id, time.Now().Add(ahead+time.Hour))
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
	assert.Contains(t, err.Error(), "is 2h ahead of this machine's")
	assert.Empty(t, f.Calls(timeoutRoute))
}
