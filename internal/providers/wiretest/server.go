package wiretest

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// T is the part of testing.TB that a fake needs; providertest.T has it too.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
	Cleanup(f func())
}

// Options shape a server.
type Options struct {
	Latency  time.Duration // before each answer
	Contract *Contract     // validates each exchange; nil = none
}

// Route is one call that the fake knows.
type Route struct {
	Method  string
	Path    string   // as in http.ServeMux: /v2/sandboxes/{id}
	Query   []string // the names that may stand in the query
	Headers []string // that must be there and not empty
	Fields  []string // the top-level fields that a JSON body may have; nil = no body
	Raw     bool     // any body, JSON or not
	Changes bool     // it changes a sandbox's life
	Serve   http.HandlerFunc
}

// Name is how faults and calls name a route: "GET /v2/sandboxes/{id}".
func (r Route) Name() string { return r.Method + " " + r.Path }

// Call is one request that came.
type Call struct {
	Route string
	URL   string // path and query
	Body  []byte
	At    time.Time
}

// Server is a strict fake of one HTTP API. Errors in what it is asked fail the
// test and are answered with 418, which no client takes for an answer.
type Server struct {
	t   T
	o   Options
	mux *http.ServeMux

	mu     sync.Mutex
	calls  []Call
	faults []*Fault
}

// New makes a server without routes; it ends with the test.
func New(t T, o Options) *Server {
	s := &Server{t: t, o: o, mux: http.NewServeMux()}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.t.Errorf("unknown call %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusTeapot)
	})
	return s
}

// Handle adds routes.
func (s *Server) Handle(routes ...Route) {
	for _, r := range routes {
		s.mux.HandleFunc(r.Name(), r.Serve)
	}
}

// Dial connects over net.Pipe, whatever the address.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return nil, net.ErrClosed
}

// Listen serves on loopback as well and gives the address, http://127.0.0.1:n.
func (s *Server) Listen() string { return "" }

// Calls lists the requests to a route, in the order they came; "" = all.
func (s *Server) Calls(route string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c Call) bool { return route != "" && c.Route != route })
}

// Changes counts the requests to routes that change a sandbox's life, so that a
// read path can prove that it makes none.
func (s *Server) Changes() int { return 0 }

// Break plants faults; the first one that fits a request and is not used up
// takes it.
func (s *Server) Break(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		s.faults = append(s.faults, &f)
	}
}

// Heal takes all faults back.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}
