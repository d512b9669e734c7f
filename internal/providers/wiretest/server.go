package wiretest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	Route  string
	URL    string // path and query
	Header http.Header
	Body   []byte
	At     time.Time
}

// Server is a strict fake of one HTTP API. Errors in what it is asked fail the
// test and are answered with 418, which no client takes for an answer.
type Server struct {
	t    T
	o    Options
	mux  *http.ServeMux
	http *http.Server
	pipe *pipes

	mu      sync.Mutex
	over    bool // the test has ended
	calls   []Call
	changes int
	faults  []*Fault
	reading int
	ended   chan struct{}
}

// New makes a server without routes; it ends with the test.
func New(t T, o Options) *Server {
	s := &Server{t: t, o: o, mux: http.NewServeMux(), pipe: newPipes(), ended: make(chan struct{})}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.wrong("unknown call %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusTeapot)
	})
	t.Cleanup(s.close)
	return s
}

// wrong fails the test for what a client asked, while there is a test.
func (s *Server) wrong(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.t.Errorf("wire fake: "+format, args...)
	}
}

func (s *Server) close() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	close(s.ended)
	_ = s.pipe.Close()
	_ = s.http.Close()
	s.pipe.served.Wait()
}

// Handle adds routes.
func (s *Server) Handle(routes ...Route) {
	for _, r := range routes {
		s.mux.HandleFunc(r.Name(), func(w http.ResponseWriter, req *http.Request) { s.serve(r, w, req) })
	}
}

// ServeHTTP lets the server stand behind a listener of the caller's own.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // the value that net/http knows
				panic(p)
			}
			s.wrong("%s %s: panic: %v", r.Method, r.URL, p)
		}
	}()
	s.mux.ServeHTTP(w, r)
}

// serve checks a request, notes it, and lets a fault or the route answer.
func (s *Server) serve(route Route, w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the client left
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	if !s.pause(req, s.o.Latency) {
		return
	}
	s.note(route, req, body)
	if why := route.mistake(req, body); why != "" {
		s.wrong("%s: %s (%s)", route.Name(), why, req.URL)
		w.WriteHeader(http.StatusTeapot)
		return
	}
	if f := s.fault(route, req); f != nil {
		s.trouble(f, route, w, req)
		return
	}
	s.o.Contract.watch(s, route, w, req, body)
}

func (s *Server) note(route Route, req *http.Request, body []byte) {
	s.mu.Lock()
	s.calls = append(s.calls, Call{route.Name(), req.URL.String(), req.Header.Clone(), body, time.Now()})
	reads := s.reading > 0 && route.Changes
	if route.Changes {
		s.changes++
	}
	s.mu.Unlock()
	if reads {
		s.wrong("%s changes a sandbox's life on a read path", route.Name())
	}
}

// mistake says what is wrong with a request, "" for nothing.
func (r Route) mistake(req *http.Request, body []byte) string {
	for name, values := range req.URL.Query() {
		if !slices.Contains(r.Query, name) {
			return "unknown query name " + name
		}
		if len(values) > 1 && !slices.Contains(r.Query, name+"...") {
			return "the query name " + name + " is repeated"
		}
	}
	for _, name := range r.Headers {
		if req.Header.Get(name) == "" {
			return "no header " + name
		}
	}
	switch {
	case r.Raw, len(body) == 0:
		return ""
	case r.Fields == nil:
		return fmt.Sprintf("a body of %d bytes where none is known", len(body))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return "the body is no JSON object: " + err.Error()
	}
	for name := range fields {
		if !slices.Contains(r.Fields, name) {
			return "unknown field " + name
		}
	}
	return ""
}

// pause waits, unless the client leaves or the test ends before.
func (s *Server) pause(req *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-req.Context().Done():
	case <-s.ended:
	}
	return false
}

// Ended is closed when the test is over, for routes that wait.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Dial connects over net.Pipe, whatever the address.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	s.pipe.begin(func() { _ = s.http.Serve(s.pipe) })
	return s.pipe.dial(ctx)
}

// Listen serves on loopback as well and gives the address, http://127.0.0.1:n.
func (s *Server) Listen() string {
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0") //nolint:forbidigo // the listener outlives every request and ends with the test
	if err != nil {
		s.t.Errorf("listen: %v", err)
		s.t.FailNow()
	}
	go func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.wrong("serve: %v", err)
		}
	}()
	return "http://" + l.Addr().String()
}

// Calls lists the requests to a route, in the order they came; "" = all.
func (s *Server) Calls(route string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c Call) bool { return route != "" && c.Route != route })
}

// Changes counts the requests to routes that change a sandbox's life, so that a
// read path can prove that it makes none.
func (s *Server) Changes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// Reading runs f, in which any call that changes a sandbox's life fails the test.
func (s *Server) Reading(f func()) {
	s.mu.Lock()
	s.reading++
	s.mu.Unlock()
	f()
	s.mu.Lock()
	s.reading--
	s.mu.Unlock()
}

// JSON answers with a value.
func JSON(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// Decode reads a request's JSON body; what cannot be read stays zero.
func Decode(r *http.Request, into any) {
	_ = json.NewDecoder(r.Body).Decode(into)
}
