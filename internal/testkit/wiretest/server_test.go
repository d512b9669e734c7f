package wiretest_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
)

// serve is a fake of two routes, which answers after a latency.
func serve(t wiretest.T, latency time.Duration) *wiretest.Server {
	s := wiretest.New(t, wiretest.Options{Latency: latency})
	s.Handle(
		wiretest.Route{Method: "GET", Path: "/boxes", Query: []string{"limit", "tag", "tag..."}, Headers: []string{"X-Key"}, Serve: func(w http.ResponseWriter, _ *http.Request) {
			wiretest.JSON(w, http.StatusOK, map[string]string{"padding": strings.Repeat("x", 5000)})
		}},
		wiretest.Route{Method: "POST", Path: "/boxes", Fields: []string{"name"}, Changes: true, Serve: func(w http.ResponseWriter, r *http.Request) {
			var body struct{ Name string }
			wiretest.Decode(r, &body)
			wiretest.JSON(w, http.StatusCreated, body.Name)
		}},
		wiretest.Route{Method: "GET", Path: "/panic", Serve: func(http.ResponseWriter, *http.Request) { panic("a fake has a bug") }},
		wiretest.Route{Method: "GET", Path: "/unwritable", Serve: func(w http.ResponseWriter, _ *http.Request) {
			wiretest.JSON(w, http.StatusOK, make(chan int))
		}},
	)
	return s
}

func client(t wiretest.T, s *wiretest.Server) *httpx.Client {
	c, err := httpx.New(httpx.Net{Dial: s.Dial}, httpx.Options{Base: "http://fake", Tries: 1, Header: http.Header{"X-Key": {"k"}}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestAStrictServerFailsTheTest(t *testing.T) {
	t.Parallel()
	text := http.Header{"Content-Type": {"text/plain"}}
	for name, tc := range map[string]struct {
		r    httpx.Request
		said string
	}{
		"unknown path":     {httpx.Request{Path: "/nowhere"}, "unknown call GET fake/nowhere"},
		"unknown method":   {httpx.Request{Method: "PUT", Path: "/boxes"}, "unknown call PUT"},
		"HEAD for GET":     {httpx.Request{Method: "HEAD", Path: "/boxes"}, "unknown call HEAD"},
		"double slash":     {httpx.Request{URL: "http://fake//boxes"}, "unknown call GET"},
		"dots":             {httpx.Request{URL: "http://fake/a/../boxes"}, "unknown call GET"},
		"unknown query":    {httpx.Request{Path: "/boxes", Query: map[string][]string{"limti": {"1"}}}, "unknown query name limti"},
		"repeated query":   {httpx.Request{Path: "/boxes", Query: map[string][]string{"limit": {"1", "2"}}}, "limit is repeated"},
		"unreadable query": {httpx.Request{Path: "/boxes?limit=%zz"}, "the query cannot be read"},
		"semicolons":       {httpx.Request{Path: "/boxes?limit=1;tag=2"}, "the query cannot be read"},
		"no header":        {httpx.Request{Path: "/boxes", Header: http.Header{"X-Key": {""}}}, "no header X-Key"},
		"unknown field":    {httpx.Request{Method: "POST", Path: "/boxes", JSON: map[string]string{"colour": "x"}}, "unknown field colour"},
		"no JSON":          {httpx.Request{Method: "POST", Path: "/boxes", Body: []byte("["), Header: http.Header{"Content-Type": {"application/json"}}}, "no JSON object"},
		"no object":        {httpx.Request{Method: "POST", Path: "/boxes", JSON: []int{1}}, "no JSON object"},
		"null":             {httpx.Request{Method: "POST", Path: "/boxes", Body: []byte("null"), Header: http.Header{"Content-Type": {"application/json"}}}, "no JSON object"},
		"other type":       {httpx.Request{Method: "POST", Path: "/boxes", Body: []byte("{}"), Header: text}, `sent as "text/plain"`},
		"a body":           {httpx.Request{Path: "/boxes", Body: []byte("{}")}, "a body of 2 bytes"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			v := providertest.Record(t.Context(), func(r providertest.T) {
				_, err := client(r, serve(r, 0)).Do(r.Context(), tc.r)
				assert.Equal(t, http.StatusTeapot, httpx.Status(err), "%v", err)
			})
			require.Len(t, v.Messages, 1)
			assert.Contains(t, v.Messages[0], tc.said)
		})
	}
}

func TestWhatIsKnownIsAnswered(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]httpx.Request{
		"a list":            {Path: "/boxes", Query: map[string][]string{"limit": {"1"}, "tag": {"a", "b"}}},
		"a field":           {Method: "POST", Path: "/boxes", JSON: map[string]string{"name": "x"}},
		"no body":           {Method: "POST", Path: "/boxes"},
		"a type with words": {Method: "POST", Path: "/boxes", Body: []byte("{}"), Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			began := time.Now()
			_, err := client(t, serve(t, time.Second)).Do(t.Context(), r)
			require.NoError(t, err)
			assert.Equal(t, time.Second, time.Since(began), "the latency is virtual")
		})
	}
}

// TestAPanicOfAFakeFailsTheTest: and there is no answer.
func TestAPanicOfAFakeFailsTheTest(t *testing.T) {
	t.Parallel()
	for path, said := range map[string]string{"/panic": "panic: a fake has a bug", "/unwritable": "unsupported type: chan int"} {
		synctest.Test(t, func(t *testing.T) {
			v := providertest.Record(t.Context(), func(r providertest.T) {
				_, err := client(r, serve(r, 0)).Do(r.Context(), httpx.Request{Path: path, Once: true})
				require.Error(t, err)
				assert.Zero(t, httpx.Status(err), "no status came")
			})
			require.NotEmpty(t, v.Messages)
			assert.Contains(t, v.Messages[0], said)
		})
	}
}

func TestCallsAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, 0)
		c := client(t, s)
		for _, r := range []httpx.Request{
			{Path: "/boxes", Query: map[string][]string{"limit": {"7"}}},
			{Method: "POST", Path: "/boxes", JSON: map[string]string{"name": "x"}},
		} {
			_, err := c.Do(t.Context(), r)
			require.NoError(t, err)
		}
		assert.Len(t, s.Calls(""), 2)
		list, create := s.Calls("GET /boxes"), s.Calls("POST /boxes")
		require.Len(t, list, 1)
		require.Len(t, create, 1)
		assert.Equal(t, "/boxes?limit=7", list[0].URL)
		assert.Equal(t, "k", list[0].Header.Get("X-Key"))
		assert.Equal(t, time.Now(), list[0].At)
		assert.JSONEq(t, `{"name":"x"}`, string(create[0].Body))
		assert.Empty(t, s.Calls("DELETE /boxes"))
	})
}

func TestReadingMayChangeNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := providertest.Record(t.Context(), func(r providertest.T) {
			s := serve(r, 0)
			c := client(r, s)
			change := func() {
				_, err := c.Do(r.Context(), httpx.Request{Method: "POST", Path: "/boxes"})
				assert.NoError(t, err)
			}
			change()
			assert.Equal(t, 1, s.Changes())
			assert.Panics(t, func() { s.Reading(func() { change(); panic("a check ends early") }) })
			change()
			assert.Equal(t, 3, s.Changes())
		})
		assert.Equal(t, []string{"wire fake: POST /boxes changes a sandbox's life on a read path"}, v.Messages)
	})
}

// TestAfterTheTest: a late request neither fails nor blocks.
func TestAfterTheTest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *wiretest.Server
		v := providertest.Record(t.Context(), func(r providertest.T) {
			s = serve(r, 0)
			client(r, s)
		})
		<-s.Ended()
		_, err := s.Dial(t.Context(), "tcp", "fake:80")
		require.ErrorIs(t, err, net.ErrClosed)
		s.ServeHTTP(blank{}, must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://fake/nowhere", nil)))
		assert.False(t, v.Failed, "%v", v.Messages)
	})
}

// blank is a ResponseWriter that keeps nothing.
type blank struct{}

func (blank) Header() http.Header         { return http.Header{} }
func (blank) Write(b []byte) (int, error) { return len(b), nil }
func (blank) WriteHeader(int)             {}

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

func TestTidy(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/": true, "/a": true, "/a/b": true, "/a/": true, "/a%2F..%2Fb": true,
		"//": false, "//a": false, "/a//b": false, "/a/../b": false, "/a/./b": false, "/a//": false, "": false, "a": true,
	} {
		assert.Equal(t, want, wiretest.Tidy(path), path)
	}
}
