package wiretest_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/wiretest"
)

func TestTroubles(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault wiretest.Fault
		kind  fault.Kind
		took  time.Duration
	}{
		"hang":         {wiretest.Fault{Trouble: wiretest.TroubleHang}, fault.KindUnavailable, httpx.DefaultTimeout},
		"hang in body": {wiretest.Fault{Trouble: wiretest.TroubleHangBody}, fault.KindUnavailable, httpx.DefaultTimeout},
		"drip":         {wiretest.Fault{Trouble: wiretest.TroubleDrip}, fault.KindUnavailable, httpx.DefaultTimeout},
		"reset":        {wiretest.Fault{Trouble: wiretest.TroubleReset}, fault.KindUnavailable, 0},
		"truncate":     {wiretest.Fault{Trouble: wiretest.TroubleTruncate}, fault.KindUnavailable, 0},
		"huge":         {wiretest.Fault{Trouble: wiretest.TroubleHuge}, fault.KindUnavailable, 0},
		"html":         {wiretest.HTML(), fault.KindUnavailable, 0},
		"garbage":      {wiretest.Garbage(), fault.KindUnavailable, 0},
		"redirect":     {wiretest.Redirect("http://elsewhere/"), fault.KindUnavailable, 0},
		"403":          {wiretest.Status(403), fault.KindAuth, 0},
		"late":         {wiretest.Fault{Delay: time.Second, Status: 500, Late: true}, fault.KindUnavailable, time.Second},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := serve(t, 0)
			c := client(t, s)
			s.Break(tc.fault)
			began := time.Now()
			var into map[string]any
			_, err := c.JSON(t.Context(), httpx.Request{Path: "/boxes"}, &into)
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			assert.Equal(t, tc.took, time.Since(began))
			s.Heal()
			_, err = c.JSON(t.Context(), httpx.Request{Path: "/boxes"}, &into)
			require.NoError(t, err)
		})
	}
}

// TestFiftyMegabytesAreGoodJSON: only a limit on the body refuses them.
func TestFiftyMegabytesAreGoodJSON(t *testing.T) {
	t.Parallel()
	s := serve(t, 0)
	s.Break(wiretest.Fault{Trouble: wiretest.TroubleHuge})
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, s.Listen()+"/boxes", nil))
	req.Header.Set("X-Key", "k")
	res := must(http.DefaultTransport.RoundTrip(req)) //nolint:bodyclose // it is closed two lines below
	defer func() { _ = res.Body.Close() }()
	size := &counter{r: res.Body}
	var into map[string]string
	require.NoError(t, json.NewDecoder(size).Decode(&into))
	assert.Len(t, into["padding"], 5000)
	assert.GreaterOrEqual(t, size.n, 50<<20)
}

type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += n
	return n, err
}

// TestResetOnLoopback: over TCP the client sees a reset and no regular end.
func TestResetOnLoopback(t *testing.T) {
	t.Parallel()
	s := serve(t, 0)
	s.Break(wiretest.Fault{Trouble: wiretest.TroubleReset})
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, s.Listen()+"/boxes", nil))
	req.Header.Set("X-Key", "k")
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err == nil {
		_ = res.Body.Close()
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestFaultsCount(t *testing.T) {
	t.Parallel()
	s := serve(t, 0)
	c, err := httpx.New(httpx.Net{}, httpx.Options{Base: s.Listen(), Tries: 1, Header: http.Header{"X-Key": {"k"}}})
	require.NoError(t, err)
	defer c.Close()
	s.Break(
		wiretest.Fault{Route: "GET /boxes", After: 1, Times: 2, Status: 404},
		wiretest.Fault{Contains: "limit=9", Status: 410},
		wiretest.Fault{Route: "POST /boxes", Status: 500},
	)
	var got []int
	for _, path := range []string{"/boxes", "/boxes?limit=9", "/boxes", "/boxes", "/boxes?limit=9"} {
		_, err := c.Do(t.Context(), httpx.Request{Path: path})
		got = append(got, httpx.Status(err))
	}
	assert.Equal(t, []int{0, 404, 404, 0, 410}, got)
}

// TestALateFaultKeepsTheEffect: only the answer is lost.
func TestALateFaultKeepsTheEffect(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault wiretest.Fault
		does  bool
	}{
		"500":          {wiretest.Status(500), false},
		"500 late":     {wiretest.Fault{Status: 500, Late: true}, true},
		"reset":        {wiretest.Fault{Trouble: wiretest.TroubleReset}, false},
		"reset late":   {wiretest.Fault{Trouble: wiretest.TroubleReset, Late: true}, true},
		"hang late":    {wiretest.Fault{Trouble: wiretest.TroubleHang, Late: true}, true},
		"cut in half":  {wiretest.Fault{Trouble: wiretest.TroubleTruncate}, true},
		"another body": {wiretest.Fault{Body: "[]", Header: map[string]string{"X-Total": "9"}}, false},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			done := 0
			s := wiretest.New(t, wiretest.Options{})
			s.Handle(wiretest.Route{Method: "DELETE", Path: "/boxes/{id}", Serve: func(w http.ResponseWriter, r *http.Request) {
				done++
				wiretest.JSON(w, http.StatusOK, r.PathValue("id"))
			}})
			s.Break(tc.fault)
			_, err := client(t, s).Do(t.Context(), httpx.Request{Method: "DELETE", Path: "/boxes/a"})
			assert.Equal(t, tc.fault.Body != "[]", err != nil)
			synctest.Wait()
			assert.Equal(t, tc.does, done == 1)
		})
	}
}

// TestAForgottenTokenGivesTheFirstPage: as an API whose pages loop.
func TestAForgottenTokenGivesTheFirstPage(t *testing.T) {
	t.Parallel()
	s := wiretest.New(t, wiretest.Options{})
	s.Handle(wiretest.Route{Method: "GET", Path: "/pages", Query: []string{"token", "limit"}, Serve: func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.URL.RawQuery))
	}})
	s.Break(wiretest.Fault{Contains: "token=", Forget: "token"})
	assert.Equal(t, "limit=2", ask(t, s, http.MethodGet, "/pages?limit=2&token=a").Body.String())
	assert.Equal(t, "limit=2", ask(t, s, http.MethodGet, "/pages?limit=2").Body.String())
	assert.Equal(t, "/pages?limit=2&token=a", s.Calls("")[0].URL, "the call is kept as it came")
}

func TestUnplugged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		text string
	}{
		"DNS":     {&net.DNSError{Err: "no such host", Name: "api.example", IsNotFound: true}, "no such host"},
		"refused": {syscall.ECONNREFUSED, "refused"},
		"TLS":     {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "certificate"},
		"other":   {errors.New("the cable is out"), "the cable is out"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := serve(t, 0)
			c := client(t, s)
			get := func() error { _, err := c.Do(t.Context(), httpx.Request{Path: "/boxes"}); return err }
			require.NoError(t, get())
			s.Unplug(tc.err)
			err := get()
			require.Equal(t, fault.KindUnavailable, fault.KindOf(err))
			assert.Contains(t, err.Error(), tc.text)
			assert.Len(t, s.Calls(""), 1, "a connection that was open is closed")
			var op *net.OpError
			_, dialErr := s.Dial(t.Context(), "tcp", "fake:80")
			require.ErrorIs(t, dialErr, tc.err)
			assert.Equal(t, name == "DNS" || name == "refused", errors.As(dialErr, &op), "net.Dialer wraps what is its own")
			s.Unplug(nil)
			require.NoError(t, get())
		})
	}
}

// TestAFaultWaitsForTheCallBeforeIt: only calls after Break count.
func TestAFaultWaitsForTheCallBeforeIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, 0)
		c := client(t, s)
		create := func() {
			_, err := c.Do(t.Context(), httpx.Request{Method: http.MethodPost, Path: "/boxes"})
			require.NoError(t, err)
		}
		list := func() int {
			_, err := c.Do(t.Context(), httpx.Request{Path: "/boxes"})
			return httpx.Status(err)
		}
		create()
		broken := wiretest.Status(http.StatusInternalServerError)
		broken.Route, broken.Past = "GET /boxes", "POST /boxes"
		s.Break(broken)
		assert.Zero(t, list(), "nothing has been asked since")
		create()
		assert.Equal(t, http.StatusInternalServerError, list())
		assert.Equal(t, http.StatusInternalServerError, list())
	})
}
