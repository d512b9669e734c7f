package httpx_test

import (
	"net/http"
	"sync/atomic"
	"testing"

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
