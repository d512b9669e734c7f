package httpx_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/testkit/bubble"
)

// TestWhatIsRepeated: a request is repeated only without a second effect and where it may succeed.
func TestWhatIsRepeated(t *testing.T) {
	t.Parallel()
	down, many, missing := text(503, ""), text(429, ""), text(404, "")
	get, head, del, post, put := http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodPost, http.MethodPut
	for name, tc := range map[string]struct {
		r      httpx.Request
		answer http.HandlerFunc
		asked  int
	}{
		"GET 503":               {httpx.Request{Method: get}, down, 3},
		"unnamed method 503":    {httpx.Request{}, down, 3},
		"HEAD 503":              {httpx.Request{Method: head}, down, 3},
		"GET 429":               {httpx.Request{}, many, 3},
		"GET 408":               {httpx.Request{}, text(408, ""), 3},
		"GET cut short":         {httpx.Request{}, begin("{", reset), 3},
		"GET silent":            {httpx.Request{}, hang, 3},
		"GET 404":               {httpx.Request{}, missing, 1},
		"GET 401":               {httpx.Request{}, text(401, ""), 1},
		"GET 400":               {httpx.Request{}, text(400, ""), 1},
		"GET 501":               {httpx.Request{}, text(501, ""), 1},
		"GET once":              {httpx.Request{Once: true}, down, 1},
		"DELETE 503":            {httpx.Request{Method: del}, down, 1},
		"DELETE 429":            {httpx.Request{Method: del}, many, 3},
		"DELETE silent":         {httpx.Request{Method: del}, hang, 1},
		"DELETE reset":          {httpx.Request{Method: del}, reset, 1},
		"DELETE 503, again":     {httpx.Request{Method: del, Again: true}, down, 3},
		"POST 503":              {httpx.Request{Method: post}, down, 1},
		"POST 429":              {httpx.Request{Method: post}, many, 1},
		"POST 503, again":       {httpx.Request{Method: post, Again: true}, down, 3},
		"POST 404, again":       {httpx.Request{Method: post, Again: true}, missing, 1},
		"POST again, but once":  {httpx.Request{Method: post, Again: true, Once: true}, down, 1},
		"PUT 503":               {httpx.Request{Method: put}, down, 1},
		"GET fine at the third": {httpx.Request{}, each(down, many, text(200, "{}")), 3},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			c, m := client(t, tc.answer, httpx.Options{})
			tc.r.Op = "a"
			_, err := c.Do(t.Context(), tc.r)
			assert.Equal(t, strings.Contains(name, "fine"), err == nil, "%v", err)
			assert.Len(t, m.requests(), tc.asked)
		})
	}
}

// TestABodyIsSentAgainWhole with every try.
func TestABodyIsSentAgainWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []string
		c, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
			body := make([]byte, 64)
			n, _ := r.Body.Read(body)
			got = append(got, string(body[:n]))
			w.WriteHeader(http.StatusServiceUnavailable)
		}, httpx.Options{})
		_, err := c.Do(t.Context(), httpx.Request{Op: "a", Method: http.MethodPost, Again: true, JSON: map[string]int{"n": 7}})
		require.Error(t, err)
		assert.Equal(t, []string{`{"n":7}`, `{"n":7}`, `{"n":7}`}, got)
	})
}

// TestPausesGrow: from 200 ms, with jitter, so that clients do not retry at the same time.
func TestPausesGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		c, _ := client(t, func(w http.ResponseWriter, _ *http.Request) {
			at = append(at, time.Now())
			w.WriteHeader(http.StatusInternalServerError)
		}, httpx.Options{Tries: 10})
		_, err := c.Do(t.Context(), httpx.Request{Op: "a"})
		require.Error(t, err)
		require.Len(t, at, 10)
		var pauses []time.Duration
		for i := range at[1:] {
			pauses = append(pauses, at[i+1].Sub(at[i]))
			middle := min(200*time.Millisecond<<i, 5*time.Second)
			assert.GreaterOrEqual(t, pauses[i], middle/2)
			assert.LessOrEqual(t, pauses[i], middle*3/2+time.Millisecond)
		}
		assert.Greater(t, slices.Max(pauses), 2*time.Second)
	})
}

// TestRetryAfterIsKept: the client waits as long as the server asks, or the error has the time.
func TestRetryAfterIsKept(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		header [2]string
		status int
		within time.Duration
		asked  int
		took   time.Duration // of all; 0 = whatever the jitter makes of it
		names  time.Duration // in the error
	}{
		"seconds":                {[2]string{"Retry-After", "3"}, 429, 0, 3, 6 * time.Second, 3 * time.Second},
		"on 503":                 {[2]string{"Retry-After", "3"}, 503, 0, 3, 6 * time.Second, 3 * time.Second},
		"on 500 it says nothing": {[2]string{"Retry-After", "3"}, 500, 0, 3, 0, 0},
		"fractional":             {[2]string{"Retry-After", "0.5"}, 429, 0, 3, time.Second, 500 * time.Millisecond},
		"suffixed":               {[2]string{"Retry-After-Sandbox-List", "4"}, 429, 0, 3, 8 * time.Second, 4 * time.Second},
		"a limit that resets":    {[2]string{"RateLimit-Reset", "2"}, 429, 0, 3, 4 * time.Second, 2 * time.Second},
		"the longest we wait":    {[2]string{"Retry-After", "15"}, 429, 0, 3, 30 * time.Second, 15 * time.Second},
		"longer":                 {[2]string{"Retry-After", "16"}, 429, 0, 1, 0, 16 * time.Second},
		"beyond the deadline":    {[2]string{"Retry-After", "3"}, 429, 2 * time.Second, 1, 0, 3 * time.Second},
		"within the deadline":    {[2]string{"Retry-After", "3"}, 429, 7 * time.Second, 3, 6 * time.Second, 3 * time.Second},
		"garbage":                {[2]string{"Retry-After", "soon"}, 429, 0, 3, 0, 0},
		"negative":               {[2]string{"Retry-After", "-5"}, 429, 0, 3, 0, 0},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			c, m := client(t, text(tc.status, "", tc.header[0], tc.header[1]), httpx.Options{})
			ctx := t.Context()
			if tc.within > 0 {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, tc.within)
				defer cancel()
			}
			began := time.Now()
			_, err := c.Do(ctx, httpx.Request{Op: "a"})
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
			assert.Len(t, m.requests(), tc.asked)
			var f *fault.Error
			require.ErrorAs(t, err, &f)
			assert.Equal(t, tc.names, f.RetryAfter)
			switch took := time.Since(began); {
			case tc.asked == 1:
				assert.Zero(t, took, "it gives up at once")
			case tc.took > 0:
				assert.Equal(t, tc.took, took.Round(100*time.Millisecond))
			default:
				assert.Less(t, took, time.Second)
			}
		})
	}
}

// TestWaysThatFail are found before any answer.
func TestWaysThatFail(t *testing.T) {
	t.Parallel()
	dialing := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for name, tc := range map[string]struct {
		err     error
		says    string
		hint    string
		dials   int // of a GET
		unsent  bool
		deletes int // dials of a DELETE
	}{
		"no such host":     {dialing(&net.DNSError{Err: "no such host", Name: "api.example", IsNotFound: true}), "DNS has no such host: api.example", "check the url", 1, true, 1},
		"DNS is down":      {dialing(&net.DNSError{Err: "server misbehaving", Name: "api.example", IsTemporary: true}), "the name api.example cannot be looked up: server misbehaving", "check the network", 3, true, 3},
		"refused":          {dialing(syscall.ECONNREFUSED), "connection refused", "check that a server listens at http://api.example", 3, true, 3},
		"no route":         {dialing(syscall.EHOSTUNREACH), "no route to the host", "check the network", 3, true, 3},
		"reset":            {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, "the connection was reset", "try again", 3, false, 1},
		"no connection":    {dialing(context.DeadlineExceeded), "no connection in time", "check that http://api.example can be reached", 3, true, 3},
		"proxy is off":     {&net.OpError{Op: "proxyconnect", Err: dialing(syscall.ECONNREFUSED)}, "the proxy cannot be reached: connection refused", "HTTPS_PROXY", 3, true, 3},
		"proxy is unknown": {&net.OpError{Op: "proxyconnect", Err: dialing(&net.DNSError{Name: "proxy", IsNotFound: true})}, "the proxy cannot be reached: DNS has no such host: proxy", "HTTPS_PROXY", 1, true, 1},
		"something else":   {errors.New("odd\n" + secret), "odd ***", "", 3, false, 1},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			dials := 0
			c, err := httpx.New(httpx.Net{Dial: func(context.Context, string, string) (net.Conn, error) { dials++; return nil, tc.err }},
				httpx.Options{Profile: "prod", Base: "http://api.example", Secrets: []string{secret}})
			require.NoError(t, err)
			_, err = c.Do(t.Context(), httpx.Request{Op: "get a"})
			require.EqualError(t, err, "prod: get a: "+tc.says)
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
			assert.Contains(t, fault.HintOf(err), tc.hint)
			require.ErrorIs(t, err, tc.err, "the cause stays to be asked for")
			assert.Equal(t, tc.dials, dials)
			assert.Equal(t, tc.unsent, httpx.NotSent(err))
			dials = 0
			_, err = c.Do(t.Context(), httpx.Request{Op: "end a", Method: http.MethodDelete})
			require.Error(t, err)
			assert.Equal(t, tc.deletes, dials)
		})
	}
	assert.False(t, httpx.NotSent(fault.New(fault.KindUnavailable, "HTTP 503")))
}

// TestTrace: one line for each request, answer and pause, without headers and secrets.
func TestTrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []string
		m := serve(t, each(
			text(503, `{"message":"no room"}`, "Retry-After", "1"),
			func(w http.ResponseWriter, r *http.Request) {
				pass(12 * time.Millisecond)
				text(200, strings.Repeat("x", 3400))(w, r)
			},
			hang, text(200, "abc"), text(401, `{"message":"bad key `+secret+`"}`),
		))
		c := m.traced(t, httpx.Options{}, func(line string) { mu.Lock(); defer mu.Unlock(); lines = append(lines, line) })
		_, err := c.Do(t.Context(), httpx.Request{Op: "get a", Path: "/a", Query: map[string][]string{"token": {"x"}, "limit": {"5"}}})
		require.NoError(t, err)
		_, err = c.Do(t.Context(), httpx.Request{Op: "get b", Path: "/b", Once: true})
		require.Error(t, err)
		s, err := c.Stream(t.Context(), httpx.Request{Op: "get c", Path: "/c"})
		require.NoError(t, err)
		require.NoError(t, s.Body.Close())
		_, err = c.Do(t.Context(), httpx.Request{Op: "end d", Method: http.MethodDelete, Path: "/" + secret})
		require.Error(t, err)
		assert.Equal(t, []string{
			"> GET http://api.example/v1/a?limit=5&token=***",
			"< 503 0s 21B GET http://api.example/v1/a?limit=5&token=***",
			"! retry 2/3 in 1s: prod: get a: HTTP 503: no room",
			"> GET http://api.example/v1/a?limit=5&token=***",
			"< 200 12ms 3.4kB GET http://api.example/v1/a?limit=5&token=***",
			"> GET http://api.example/v1/b",
			"! GET http://api.example/v1/b after 10s: prod: get b: no answer within 10s",
			"> GET http://api.example/v1/c",
			"< 200 0s stream GET http://api.example/v1/c",
			"> DELETE http://api.example/v1/***",
			"< 401 0s 37B DELETE http://api.example/v1/***",
		}, lines)
	})
}
