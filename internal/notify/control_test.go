package notify_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/notify"
)

func (w *town) control(t *testing.T) *notify.Control {
	t.Helper()
	c, err := notify.NewControl(httpx.Net{Dial: w.dial, Agent: "sbx/test"}, "http://plane.example/done?key=s3cr3tZZZZ")
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestAControlPlaneIsToldAgainUntilItHears(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := build(t, map[string]http.HandlerFunc{"plane.example": each(answer(502, ""), answer(200, ""))})
		require.NoError(t, w.control(t).Ended(t.Context(), "t-1", map[string]string{"task": "t-1"}))
		asked := w.requests()
		require.Len(t, asked, 2)
		for _, r := range asked {
			assert.Equal(t, []string{"POST", "/done?key=s3cr3tZZZZ", "t-1", `{"task":"t-1"}`}, []string{r.method, r.path, r.header.Get("Idempotency-Key"), strings.TrimSpace(r.body)})
		}
	})
}

func TestAControlPlaneHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := build(t, map[string]http.HandlerFunc{"plane.example": hang}).control(t)
		began := time.Now()
		err := c.Ended(t.Context(), "t-1", nil)
		require.Error(t, err)
		assert.Equal(t, notify.Limit, time.Since(began))
		assert.Contains(t, fault.HintOf(err), "run.callback_url")
		assert.NotContains(t, err.Error(), "s3cr3t")
	})
}

// TestABeatForgives: a proxy without its service is no news, a refusal is.
func TestABeatForgives(t *testing.T) {
	t.Parallel()
	for status, ok := range map[int]bool{200: true, 502: true, 503: true, 504: true, 500: false, 401: false, 404: false} {
		synctest.Test(t, func(t *testing.T) {
			w := build(t, map[string]http.HandlerFunc{"plane.example": answer(status, "")})
			err := w.control(t).Beat(t.Context(), "x")
			assert.Equal(t, ok, err == nil, "%d: %v", status, err)
			assert.Len(t, w.requests(), 1, "a beat is not repeated")
		})
	}
}

func TestNoControlPlane(t *testing.T) {
	t.Parallel()
	c, err := notify.NewControl(httpx.Net{}, "")
	require.NoError(t, err)
	require.NoError(t, c.Ended(t.Context(), "t-1", nil))
	require.NoError(t, c.Beat(t.Context(), nil))
	c.Close()
	_, err = notify.NewControl(httpx.Net{}, "s3cr3t.example/done")
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	assert.NotContains(t, err.Error(), "s3cr3t")
}

func TestAnAddressOfEventsTakesEvents(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"http://plane.example/api/v1/sandboxes/s-1/events": true, "http://plane.example/api/v1/sandboxes/s-1/events?key=x": true,
		"http://plane.example/done": false, "http://plane.example/events": false, "http://plane.example/?to=/sandboxes/x/events": false,
	} {
		c, err := notify.NewControl(httpx.Net{}, address)
		require.NoError(t, err)
		assert.Equal(t, want, c.TakesEvents(), address)
		c.Close()
	}
	assert.False(t, (*notify.Control)(nil).TakesEvents())
}
