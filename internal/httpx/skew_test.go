package httpx_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
)

// TestACachedDateIsNoClock: neither machine's clock is wrong where a cache answers.
func TestACachedDateIsNoClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	type answer struct {
		after time.Duration // since the first one, by this machine's clock
		date  time.Duration // of the answer, since now
		head  map[string]string
	}
	age := func(d time.Duration) map[string]string {
		return map[string]string{"Age": strconv.Itoa(int(d.Seconds()))}
	}
	for name, tc := range map[string]struct {
		answers []answer
		skew    time.Duration
		known   bool
	}{
		"no cache":                             {[]answer{{0, -time.Hour, nil}}, -time.Hour, true},
		"an hour old":                          {[]answer{{0, -time.Hour, age(time.Hour)}}, 0, true},
		"an hour old, of a clock that is late": {[]answer{{0, -2 * time.Hour, age(time.Hour)}}, -time.Hour, true},
		"just made":                            {[]answer{{0, -time.Minute, map[string]string{"Age": "0"}}}, -time.Minute, true},
		"an odd age":                           {[]answer{{0, -time.Minute, map[string]string{"Age": "soon"}}}, -time.Minute, true},
		"a hit":                                {[]answer{{0, -time.Hour, map[string]string{"X-Cache": "Hit from cloudfront"}}}, 0, false},
		"a hit behind a miss":                  {[]answer{{0, -time.Hour, map[string]string{"X-Cache": "MISS, HIT"}}}, 0, false},
		"a hit by RFC 9211":                    {[]answer{{0, -time.Hour, map[string]string{"Cache-Status": "ExampleCache; hit; ttl=376"}}}, 0, false},
		"a miss":                               {[]answer{{0, -time.Hour, map[string]string{"X-Cache": "Miss from cloudfront"}}}, -time.Hour, true},
		"a hit after a clock":                  {[]answer{{0, 0, nil}, {time.Second, -time.Hour, map[string]string{"X-Cache": "HIT"}}}, 0, true},
		"it stands still":                      {[]answer{{0, 0, nil}, {10 * time.Second, 0, nil}}, 0, false},
		"it stands still, then goes on":        {[]answer{{0, 0, nil}, {10 * time.Second, 0, nil}, {20 * time.Second, 20 * time.Second, nil}}, 0, true},
		"two in one second":                    {[]answer{{0, 0, nil}, {time.Second / 2, 0, nil}}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var next answer
			m := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", now.Add(next.date).Format(http.TimeFormat))
				for key, value := range next.head {
					w.Header().Set(key, value)
				}
			})
			c, err := httpx.New(httpx.Net{Dial: m.Dial, Now: func() time.Time { return now.Add(next.after) }}, httpx.Options{Base: "http://api.example"})
			require.NoError(t, err)
			defer c.Close()
			for _, next = range tc.answers {
				_, err := c.Do(t.Context(), httpx.Request{Op: "list", Path: "/x"})
				require.NoError(t, err)
			}
			skew, known := c.Skew()
			assert.Equal(t, tc.known, known)
			if known {
				assert.Equal(t, tc.skew, skew)
			}
			assert.Equal(t, "no-cache", m.asked[0].Header.Get("Cache-Control"))
		})
	}
}
