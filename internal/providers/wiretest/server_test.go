package wiretest_test

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
	"sbx/internal/providers/wiretest"
)

// witness is a T that keeps what it is told.
type witness struct {
	*testing.T

	said []string
}

func (w *witness) Errorf(format string, _ ...any) { w.said = append(w.said, format) }

func serve(t wiretest.T) *wiretest.Server {
	s := wiretest.New(t, wiretest.Options{})
	s.Handle(
		wiretest.Route{Method: "GET", Path: "/boxes", Query: []string{"limit"}, Headers: []string{"X-Key"}, Serve: func(w http.ResponseWriter, _ *http.Request) {
			wiretest.JSON(w, http.StatusOK, map[string]string{"padding": strings.Repeat("x", 5000)})
		}},
		wiretest.Route{Method: "POST", Path: "/boxes", Fields: []string{"name"}, Changes: true, Serve: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
		}},
	)
	return s
}

func client(t *testing.T, s *wiretest.Server) *httpx.Client {
	t.Helper()
	c, err := httpx.New(httpx.Net{Dial: s.Dial}, httpx.Options{Base: "http://fake", Tries: 1, Header: http.Header{"X-Key": {"k"}}})
	require.NoError(t, err)
	return c
}

func TestAStrictServerFailsTheTest(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]httpx.Request{
		"unknown path":  {Path: "/nowhere"},
		"unknown query": {Path: "/boxes", Query: map[string][]string{"limti": {"1"}}},
		"no header":     {Path: "/boxes", Header: http.Header{"X-Key": {""}}},
		"unknown field": {Method: "POST", Path: "/boxes", JSON: map[string]string{"colour": "x"}},
		"no object":     {Method: "POST", Path: "/boxes", Body: []byte("[")},
		"a body":        {Method: "GET", Path: "/boxes", Body: []byte("{}")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &witness{T: t}
				c := client(t, serve(w))
				defer c.Close()
				_, err := c.Do(t.Context(), r)
				assert.Equal(t, http.StatusTeapot, httpx.Status(err))
				assert.Len(t, w.said, 1)
			})
		})
	}
}

func TestReadingMayChangeNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &witness{T: t}
		s := serve(w)
		c := client(t, s)
		defer c.Close()
		_, err := c.Do(t.Context(), httpx.Request{Method: "POST", Path: "/boxes"})
		require.NoError(t, err)
		assert.Empty(t, w.said)
		assert.Equal(t, 1, s.Changes())
		s.Reading(func() { _, err = c.Do(t.Context(), httpx.Request{Method: "POST", Path: "/boxes"}) })
		require.NoError(t, err)
		assert.Len(t, w.said, 1)
		assert.Len(t, s.Calls("POST /boxes"), 2)
	})
}

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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := serve(t)
				c := client(t, s)
				defer c.Close()
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
		})
	}
}

func TestFaultsCount(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c, err := httpx.New(httpx.Net{}, httpx.Options{Base: s.Listen(), Tries: 1, Header: http.Header{"X-Key": {"k"}}})
	require.NoError(t, err)
	defer c.Close()
	s.Break(wiretest.Fault{Route: "GET /boxes", After: 1, Times: 2, Status: 404})
	var got []int
	for range 4 {
		_, err := c.Do(t.Context(), httpx.Request{Path: "/boxes"})
		got = append(got, httpx.Status(err))
	}
	assert.Equal(t, []int{0, 404, 404, 0}, got)
}
