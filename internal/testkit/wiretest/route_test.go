package wiretest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
)

// named is a route that answers with its own name.
func named(method, host, path string) wiretest.Route {
	r := wiretest.Route{Method: method, Host: host, Path: path}
	r.Serve = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(r.Name())) }
	return r
}

// ask sends a request past any network.
func ask(t *testing.T, s http.Handler, method, url string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, url, nil))
	return w
}

func TestTheClosestHostAnswers(t *testing.T) {
	t.Parallel()
	s := wiretest.New(t, wiretest.Options{})
	s.Handle(
		named("GET", "", "/health"), named("GET", "api.e2b.app", "/health"), named("GET", "*.e2b.app", "/health"), named("GET", "*.eu.e2b.app", "/health"),
		named("POST", "", "/health"), named("GET", "", "/boxes/{id}"),
	)
	for url, want := range map[string]string{
		"http://elsewhere/health":                  "GET /health",
		"http://e2b.app/health":                    "GET /health",
		"http://api.e2b.app/health":                "GET api.e2b.app/health",
		"https://api.e2b.app:8443/health":          "GET api.e2b.app/health",
		"http://49983-ib0x.e2b.app/health":         "GET *.e2b.app/health",
		"http://49983-ib0x.eu.e2b.app:8080/health": "GET *.eu.e2b.app/health",
		"http://[::1]:80/boxes/a":                  "GET /boxes/{id}",
		"http://x/boxes/a%2Fb":                     "GET /boxes/{id}",
	} {
		assert.Equal(t, want, ask(t, s, http.MethodGet, url).Body.String(), url)
	}
	assert.Len(t, s.Calls("GET *.e2b.app/health"), 1)
	s.Break(wiretest.Fault{Route: "GET api.e2b.app/health", Status: http.StatusBadGateway})
	assert.Equal(t, http.StatusBadGateway, ask(t, s, http.MethodGet, "http://api.e2b.app/health").Code)
	assert.Equal(t, http.StatusOK, ask(t, s, http.MethodGet, "http://e2b.app/health").Code, "another host has its own days")
}

func TestARouteOfAnotherHostIsUnknown(t *testing.T) {
	t.Parallel()
	v := providertest.Record(t.Context(), func(r providertest.T) {
		s := wiretest.New(r, wiretest.Options{})
		s.Handle(named("GET", "*.e2b.app", "/health"))
		assert.Equal(t, http.StatusTeapot, ask(t, s, http.MethodGet, "http://e2b.app/health").Code)
		assert.Equal(t, http.StatusTeapot, ask(t, s, http.MethodGet, "http://evil-e2b.app/health").Code)
	})
	assert.Len(t, v.Messages, 2)
}

func TestTwoRoutesOfOneNameAreAMistakeOfTheFake(t *testing.T) {
	t.Parallel()
	s := wiretest.New(t, wiretest.Options{})
	s.Handle(named("GET", "", "/a"), named("GET", "x", "/a"), named("PUT", "", "/a"))
	assert.PanicsWithValue(t, "wiretest: two routes GET x/a", func() { s.Handle(named("GET", "x", "/a")) })
}
