package httpx_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/testkit/bubble"
)

// TestRequestsOfALookSettleEachOther, and those of two looks do not.
func TestRequestsOfALookSettleEachOther(t *testing.T) {
	t.Parallel()
	inside, api := httpx.Request{OneSandbox: true}, httpx.Request{}
	fresh := httpx.Request{OneSandbox: true, Fresh: true}
	dead := text(http.StatusBadGateway, "dead")
	for name, tc := range map[string]struct {
		first            httpx.Request
		answer           http.HandlerFunc
		asked            int
		definite, silent bool
		inside, api      bool // are sent afterwards
	}{
		"definite":            {inside, dead, 1, true, false, false, true},
		"silent inside":       {inside, hang, 1, false, true, false, true},
		"silent":              {api, hang, 1, false, true, false, false},
		"as definite, of API": {api, dead, 3, false, false, true, true},
		"in trouble":          {inside, text(http.StatusServiceUnavailable, ""), 3, false, false, true, true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			var healed atomic.Bool
			c, m := client(t, func(w http.ResponseWriter, r *http.Request) {
				if healed.Load() {
					text(http.StatusOK, "{}")(w, r)
					return
				}
				tc.answer(w, r)
			}, httpx.Options{Definite: func(s *httpx.StatusError) bool { return s.Status == http.StatusBadGateway }})
			look := httpx.Look(t.Context())
			_, err := c.Do(look, tc.first)
			require.Error(t, err)
			assert.Len(t, m.requests(), tc.asked)
			assert.Equal(t, tc.definite, fault.IsDefinite(err))
			assert.Equal(t, tc.definite || tc.silent, fault.SettlesLook(err))
			assert.Equal(t, tc.definite, httpx.LookAnswer(look) != nil)

			healed.Store(true)
			for _, next := range []struct {
				r    httpx.Request
				sent bool
			}{{inside, tc.inside}, {api, tc.api}, {fresh, true}} {
				_, err := c.Do(look, next.r)
				assert.Equal(t, next.sent, err == nil, "%+v: %v", next.r, err)
			}
			_, err = c.Do(httpx.Look(t.Context()), inside)
			require.NoError(t, err, "another look")
		})
	}
}

// heldSlot is a slot that counts how often it is left and taken again.
type heldSlot struct{ left, returned atomic.Int32 }

func (s *heldSlot) Leave() { s.left.Add(1) }

func (s *heldSlot) Return(context.Context) { s.returned.Add(1) }

// TestWhatWaitsForOneSandboxHoldsNoSlot in a look: at an address of its own at once, through the API once it
// is slow. A request to the API returns to the slot.
func TestWhatWaitsForOneSandboxHoldsNoSlot(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		r              httpx.Request
		takes          time.Duration
		look           bool
		left, returned int32
	}{
		"own host":          {httpx.Request{OneSandbox: true, OwnHost: true}, 0, true, 1, 0},
		"own host, no look": {httpx.Request{OneSandbox: true, OwnHost: true}, 0, false, 0, 0},
		"quick through API": {httpx.Request{OneSandbox: true}, 200 * time.Millisecond, true, 0, 0},
		"slow through API":  {httpx.Request{OneSandbox: true}, time.Second, true, 1, 0},
		"API":               {httpx.Request{}, time.Second, true, 0, 1},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			c, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(tc.takes)
				text(http.StatusOK, "{}")(w, r)
			}, httpx.Options{})
			var slot heldSlot
			ctx := httpx.WithSlot(t.Context(), &slot)
			if tc.look {
				ctx = httpx.Look(ctx)
			}
			_, err := c.Do(ctx, tc.r)
			require.NoError(t, err)
			assert.Equal(t, tc.left, slot.left.Load())
			assert.Equal(t, tc.returned, slot.returned.Load())
		})
	}
}
