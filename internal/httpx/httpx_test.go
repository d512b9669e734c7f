package httpx_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/testkit/bubble"
)

func TestARequestCarriesWhatIsSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m := client(t, text(200, `{"a":1}`), httpx.Options{Header: http.Header{"X-Api-Key": {secret}, "X-Team": {"red"}}})
		var got struct{ A int }
		res, err := c.JSON(t.Context(), httpx.Request{
			Op: "make a", Method: http.MethodPost, Path: httpx.Path("boxes", "a/b c", "logs"), Query: map[string][]string{"limit": {"5"}},
			JSON: map[string]int{"n": 7}, Header: http.Header{"X-Team": {""}, "x-once": {"1"}},
		}, &got)
		require.NoError(t, err)
		assert.Equal(t, 1, got.A)
		assert.Equal(t, 200, res.Status)
		r := m.requests()[0]
		assert.Equal(t, "/v1/boxes/a%2Fb%20c/logs?limit=5", r.RequestURI)
		assert.Equal(t, http.MethodPost, r.Method)
		assert.Equal(t, secret, r.Header.Get("X-Api-Key"))
		assert.Empty(t, r.Header.Values("X-Team"), "an empty value takes a header away")
		assert.Equal(t, "1", r.Header.Get("X-Once"))
		assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
		assert.Equal(t, "application/json", r.Header.Get("Accept"))
		assert.Equal(t, "sbx/test", r.Header.Get("User-Agent"))
	})
}

func TestARequestWithABodyOfItsOwnAndAnAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var body []byte
		c, m := client(t, func(_ http.ResponseWriter, r *http.Request) { body, _ = io.ReadAll(r.Body) }, httpx.Options{})
		_, err := c.Do(t.Context(), httpx.Request{
			Op: "put a", Method: http.MethodPut, URL: "http://other.example:8080/x",
			Body: []byte("raw"), Header: http.Header{"Content-Type": {"text/plain"}},
		})
		require.NoError(t, err)
		assert.Equal(t, "raw", string(body))
		assert.Equal(t, []string{"other.example:8080"}, m.dialed)
		assert.Equal(t, "text/plain", m.requests()[0].Header.Get("Content-Type"))
	})
}

func TestWhatCannotBeSentIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m := client(t, text(200, ""), httpx.Options{})
		_, err := c.Do(t.Context(), httpx.Request{Op: "a", JSON: func() {}})
		assert.Equal(t, fault.KindUnknown, fault.KindOf(err))
		_, err = c.Do(t.Context(), httpx.Request{Op: "a", URL: "http://bad host/" + secret})
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
		assert.NotContains(t, err.Error(), secret)
		_, err = c.Stream(t.Context(), httpx.Request{Op: "a", Method: "NO METHOD"})
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
		assert.Empty(t, m.requests())
	})
}

func TestNewRefusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	for name, base := range map[string]string{
		"empty": "", "no scheme": "api.example", "other scheme": "ftp://api.example", "no host": "https://",
		"ill-formed": "http://[::1", "with a password": "ftp://me:hunter22@api.example", "with the key": "ftp://api.example/" + secret,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := httpx.New(httpx.Net{}, httpx.Options{Profile: "prod", Base: base, Secrets: []string{secret}})
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			assert.Contains(t, err.Error(), "prod: ")
			assert.NotEmpty(t, fault.HintOf(err))
			assert.NotContains(t, err.Error(), "hunter22")
			assert.NotContains(t, err.Error(), secret)
		})
	}
}

// TestSkew: the server's clock against this machine's, to the second.
func TestSkew(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ahead time.Duration
		date  bool
	}{
		"ahead": {90 * time.Second, true}, "behind": {-2 * time.Hour, true}, "equal": {0, true}, "no date": {0, false},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			c, _ := client(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Date"] = nil
				if tc.date {
					w.Header().Set("Date", time.Now().Add(tc.ahead).UTC().Format(http.TimeFormat))
				}
			}, httpx.Options{})
			_, known := c.Skew()
			assert.False(t, known, "nothing was heard yet")
			_, err := c.Do(t.Context(), httpx.Request{Op: "a"})
			require.NoError(t, err)
			skew, known := c.Skew()
			assert.Equal(t, tc.date, known)
			assert.Equal(t, tc.ahead, skew)
		})
	}
}

// TestConnectionsAreReused, also by the plain client underneath.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m := client(t, text(200, "ok"), httpx.Options{})
		for range 5 {
			_, err := c.Do(t.Context(), httpx.Request{Op: "a"})
			require.NoError(t, err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Base(), nil)
		require.NoError(t, err)
		res, err := c.HTTP().Do(req)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, res.Body)
		require.NoError(t, res.Body.Close())
		assert.Len(t, m.dialed, 1)
		assert.Equal(t, "http://api.example/v1", c.Base())
	})
}

// TestDeadlines: a silent server costs one timeout per attempt and is reported; the end of the
// caller is reported as such.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		r      httpx.Request
		within time.Duration // the caller's own deadline
		cancel time.Duration // when the caller gives up
		kind   fault.Kind
		says   string
		took   time.Duration
		asked  int
	}{
		"no headers":         {hang, httpx.Request{Once: true}, 0, 0, fault.KindUnavailable, "prod: get a: no answer within 10s", 10 * time.Second, 1},
		"no end of the body": {begin(`{"a":`, hang), httpx.Request{Once: true}, 0, 0, fault.KindUnavailable, "prod: get a: no answer within 10s", 10 * time.Second, 1},
		"no end of an error": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			begin("", hang)(w, r)
		}, httpx.Request{Once: true}, 0, 0, fault.KindUnavailable, "no answer within 10s", 10 * time.Second, 1},
		"a time of its own":   {hang, httpx.Request{Once: true, Timeout: time.Minute}, 0, 0, fault.KindUnavailable, "no answer within 1m0s", time.Minute, 1},
		"the caller's time":   {hang, httpx.Request{}, 3 * time.Second, 0, fault.KindTimeout, "the time limit was reached", 3 * time.Second, 1},
		"the caller gives up": {hang, httpx.Request{}, 0, 2 * time.Second, fault.KindCanceled, "context canceled", 2 * time.Second, 1},
		"just before":         {func(http.ResponseWriter, *http.Request) { pass(9900 * time.Millisecond) }, httpx.Request{}, 0, 0, fault.KindNone, "", 9900 * time.Millisecond, 1},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			c, m := client(t, tc.answer, httpx.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.within > 0 {
				ctx, cancel = context.WithTimeout(ctx, tc.within)
				defer cancel()
			}
			if tc.cancel > 0 {
				time.AfterFunc(tc.cancel, cancel)
			}
			began := time.Now()
			tc.r.Op = "get a"
			_, err := c.Do(ctx, tc.r)
			assert.Equal(t, tc.took, time.Since(began))
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			assert.Len(t, m.requests(), tc.asked)
			if tc.says != "" {
				assert.ErrorContains(t, err, tc.says)
			}
		})
	}
}

// TestTheCallersEndNamesTheLastTry: the error for the end of the caller's time has the last error.
func TestTheCallersEndNamesTheLastTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := client(t, each(text(503, `{"message":"no room"}`), hang), httpx.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := c.Do(ctx, httpx.Request{Op: "get a"})
		assert.Equal(t, fault.KindTimeout, fault.KindOf(err))
		require.EqualError(t, err, "prod: get a: the time limit was reached")

		ctx, cancel = context.WithCancel(t.Context())
		c, _ = client(t, func(w http.ResponseWriter, r *http.Request) {
			time.AfterFunc(50*time.Millisecond, cancel) // in the pause before the second try
			text(503, `{"message":"no room"}`)(w, r)
		}, httpx.Options{})
		_, err = c.Do(ctx, httpx.Request{Op: "get a"})
		assert.Equal(t, fault.KindCanceled, fault.KindOf(err))
		require.EqualError(t, err, "prod: get a: context canceled; the last attempt returned: HTTP 503: no room")
	})
}
