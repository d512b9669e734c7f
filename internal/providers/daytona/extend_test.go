package daytona_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/daytonatest"
	"sbx/internal/testkit/wiretest"
)

const ttlRoute = "POST /api/sandbox/{id}/ttl/{minutes}"

func TestRefusedTimesToLive(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seed   daytonatest.Seed
		status int // of the answer; 0 = the fake's own
		life   time.Duration
		kind   fault.Kind
		said   string
		hint   string
		calls  int
	}{
		"no time ends it": {seed: daytonatest.Seed{Endless: true}, life: time.Hour, kind: fault.KindRefused, said: "no end of it is known"},
		"what is idle ends": {
			seed: daytonatest.Seed{Idle: true}, life: time.Hour, kind: fault.KindRefused, said: "it stops after 15m without activity",
			hint: "any activity puts that off",
		},
		"stopped":              {seed: daytonatest.Seed{State: "stopped"}, life: 3 * time.Hour, kind: fault.KindRefused, said: "it is stopped"},
		"archived":             {seed: daytonatest.Seed{State: "archived"}, life: 3 * time.Hour, kind: fault.KindRefused, said: "it is stopped"},
		"shorter":              {life: time.Minute, kind: fault.KindRefused, said: "is not later"},
		"the key has no right": {status: http.StatusForbidden, life: 3 * time.Hour, kind: fault.KindAuth, hint: "write:sandboxes", calls: 1},
		"between two states":   {status: http.StatusConflict, life: 3 * time.Hour, kind: fault.KindRefused, calls: 1},
		"beyond the region":    {status: http.StatusBadRequest, life: 3 * time.Hour, kind: fault.KindRefused, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := daytonatest.New(t, daytonatest.Options{})
			id := f.Add(tc.seed)
			if tc.status != 0 {
				f.BreakRoutes(wiretest.Status(tc.status), ttlRoute)
			}
			_, err := open(t, f.Listen(), httpx.Net{}).Extend(t.Context(), id, time.Now().Add(tc.life))
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			assert.Contains(t, err.Error(), tc.said)
			assert.Contains(t, fault.HintOf(err), tc.hint)
			assert.Len(t, f.Calls(ttlRoute), tc.calls)
		})
	}
}

// TestATimeToLiveIsInWholeMinutes, and never ends sooner than was asked. What stops an idle one stays as it is.
func TestATimeToLiveIsInWholeMinutes(t *testing.T) {
	t.Parallel()
	f := daytonatest.New(t, daytonatest.Options{})
	id := f.Add(daytonatest.Seed{})
	c := open(t, f.Listen(), httpx.Net{})
	until := time.Now().Add(90*time.Minute + 10*time.Second)
	_, err := c.Extend(t.Context(), id, until)
	require.NoError(t, err)
	now, err := c.Get(t.Context(), id)
	require.NoError(t, err)
	assert.WithinRange(t, now.ExpiresAt, until, until.Add(61*time.Second))
	assert.Equal(t, 15*time.Minute, now.IdleStop)
	assert.Empty(t, f.Calls("POST /api/sandbox/{id}/autostop/{minutes}"))

	id = f.Add(daytonatest.Seed{Labels: map[string]string{sandbox.LabelOwner: "sbx"}})
	_, err = c.Extend(t.Context(), id, until)
	require.NoError(t, err)
	now, err = c.Get(t.Context(), id)
	require.NoError(t, err)
	assert.WithinRange(t, now.LastActivityAt.Add(now.IdleStop), until, until.Add(2*time.Minute), "what sbx made may be idle for its whole life")
}
