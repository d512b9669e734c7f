// Package wiretest has the parts of the strict fakes of the providers' APIs: an HTTP server
// that fails the test for an unknown path, query name or body field and for a missing header;
// faults on demand; the failures that every client must survive; real processes for commands;
// and the official API descriptions as a contract for both sides.
//
// A fake answers in-process over net.Pipe (Server.Dial, which also works in virtual time) or on
// loopback (Server.Listen). No provider's own paths or states enter this package: they are in
// the package beside each client.
package wiretest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// T is the part of testing.TB that a fake needs.
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

// Server is a strict fake of one HTTP API. An invalid request fails the test and is answered
// with 418, which no client accepts.
type Server struct {
	t    T
	o    Options
	mux  *http.ServeMux
	http *http.Server
	pipe *pipeListener

	mu      sync.Mutex
	stopped bool // the test has ended
	routes  map[string][]Route
	calls   []Call
	changes int
	faults  []*Fault
	firsts  map[string]*recordedAnswer // of Fault.Stale, by method and address
	reading int                        // calls of Reading that run
	ended   chan struct{}
	flooded int64
}

// New makes a server without routes; it ends with the test.
func New(t T, o Options) *Server {
	s := &Server{t: t, o: o, mux: http.NewServeMux(), pipe: &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}, routes: map[string][]Route{}, firsts: map[string]*recordedAnswer{}, ended: make(chan struct{})}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.mux.HandleFunc("/", s.serveUnknown)
	t.Cleanup(s.closeServer)
	return s
}

// failTest fails the test for a request, unless the test has ended.
func (s *Server) failTest(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.t.Errorf("wire fake: "+format, args...)
	}
}

func (s *Server) closeServer() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	close(s.ended)
	_ = s.pipe.Close()
	_ = s.http.Close()
	s.pipe.served.Wait()
}

func (s *Server) serveUnknown(w http.ResponseWriter, r *http.Request) {
	s.failTest("unknown call %s %s%s", r.Method, r.Host, r.URL)
	w.WriteHeader(http.StatusTeapot)
}

// ServeHTTP lets the caller use a listener of its own. A panic of a route fails the test and
// closes the connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p != http.ErrAbortHandler { //nolint:errorlint // the value that net/http knows
			s.failTest("%s %s: panic: %v", r.Method, r.URL, p)
		}
		panic(http.ErrAbortHandler)
	}()
	if !isCleanPath(r.URL.EscapedPath()) { // a ServeMux would redirect it
		s.serveUnknown(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// isCleanPath says that a path has no empty part, "." or "..".
func isCleanPath(p string) bool {
	clean := path.Clean(p)
	return p == clean || (clean != "/" && p == clean+"/" && !strings.HasSuffix(clean, "/"))
}

// serveRoute checks and records a request, and lets a fault or the route answer.
func (s *Server) serveRoute(route Route, w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the client left
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	if !s.waitFor(req, s.o.Latency) {
		return
	}
	s.recordCall(route, req, body)
	if why := route.requestMistake(req, body); why != "" {
		s.failTest("%s: %s (%s)", route.Name(), why, req.URL)
		w.WriteHeader(http.StatusTeapot)
		return
	}
	op := s.o.Contract.checkRequest(s, route, req, body)
	if f := s.pickFault(route, req); f != nil {
		s.serveFault(f, route, w, req)
		return
	}
	s.o.Contract.serveChecked(s, op, route, w, req)
}

// waitFor waits; false when the client disconnects or the test ends before.
func (s *Server) waitFor(req *http.Request, d time.Duration) bool {
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

// Ended is closed when the test ends, for routes that wait.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Over says that nobody reads an answer that goes on any more: its client has left, or the test has ended.
func (s *Server) Over(r *http.Request) bool {
	select {
	case <-s.ended:
		return true
	default:
		return r.Context().Err() != nil
	}
}

// WakeWhenOver wakes what waits for a change when an answer that goes on is over, and when stop is called.
func (s *Server) WakeWhenOver(r *http.Request, change *sync.Cond) (stop func()) {
	left := make(chan struct{})
	go func() {
		select {
		case <-r.Context().Done():
		case <-s.ended:
		case <-left:
		}
		change.L.Lock()
		defer change.L.Unlock()
		change.Broadcast()
	}()
	return func() { close(left) }
}

// Dial connects over net.Pipe, whatever the address.
func (s *Server) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	s.pipe.first.Do(func() { s.pipe.served.Go(func() { _ = s.http.Serve(s.pipe) }) })
	return s.pipe.dialPipe(ctx, network)
}

// Unplug breaks the open connections and makes each Dial fail with an error; nil ends that. An
// error of a lookup or of a connection is wrapped in a *net.OpError, as net.Dialer does.
func (s *Server) Unplug(err error) { s.pipe.breakConnections(err) }

// Listen serves on loopback as well and returns the address, http://127.0.0.1:n.
func (s *Server) Listen() string {
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0") //nolint:forbidigo // the listener outlives every request and ends with the test
	if err != nil {
		s.t.Errorf("listen: %v", err)
		s.t.FailNow()
	}
	go func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failTest("serve: %v", err)
		}
	}()
	return "http://" + l.Addr().String()
}

// Route is one call that the fake serves.
type Route struct {
	Method string
	// Host is the host of the call, for a fake of several hosts: a name without port, or
	// "*.example.com" for all hosts below it; "" = every host. Of several routes that differ
	// in Host only, the closest one answers.
	Host string
	Path string // as in http.ServeMux: /v2/sandboxes/{id}
	// Query lists the names that the query may have, once each; "name..." beside "name"
	// allows several.
	Query   []string
	Headers []string // required, not empty
	Fields  []string // the top-level fields that a JSON body may have; nil = no body
	Raw     bool     // any body, JSON or not
	Changes bool     // it changes a sandbox's life
	Serve   http.HandlerFunc
}

// Name is the name of a route in faults and calls: "GET /v2/sandboxes/{id}", with a host
// "GET api.example.com/v2/sandboxes/{id}".
func (r Route) Name() string { return r.Method + " " + r.Host + r.Path }

func (r Route) pathVariables() iter.Seq[string] {
	return func(yield func(string) bool) {
		for part := range strings.SplitSeq(r.Path, "/") {
			name, open := strings.CutPrefix(part, "{")
			name, closed := strings.CutSuffix(name, "}")
			if open && closed && !yield(name) {
				return
			}
		}
	}
}

// Handle adds routes.
func (s *Server) Handle(routes ...Route) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range routes {
		pattern := r.Method + " " + r.Path
		same := s.routes[pattern]
		if slices.ContainsFunc(same, func(o Route) bool { return o.Host == r.Host }) {
			panic("wiretest: two routes " + r.Name())
		}
		s.routes[pattern] = append(same, r)
		if len(same) == 0 {
			s.mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) { s.pickRoute(pattern, w, req) })
		}
	}
}

// pickRoute lets the route answer that is closest to the host. A ServeMux uses GET for HEAD;
// here they are two calls.
func (s *Server) pickRoute(pattern string, w http.ResponseWriter, req *http.Request) {
	var closest Route
	most := 0
	s.mu.Lock()
	for _, r := range s.routes[pattern] {
		if n := r.hostMatch(req.Host); n > most && r.Method == req.Method {
			most, closest = n, r
		}
	}
	s.mu.Unlock()
	if most == 0 {
		s.serveUnknown(w, req)
		return
	}
	s.serveRoute(closest, w, req)
}

// hostMatch is how closely a route's host matches, 0 for not at all.
func (r Route) hostMatch(host string) int {
	if r.Host == "" {
		return 1
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	below, wild := strings.CutPrefix(r.Host, "*")
	switch {
	case r.Host == host:
		return 2 + len(host)
	case wild && len(host) > len(below) && strings.HasSuffix(host, below):
		return 1 + len(below)
	}
	return 0
}

// requestMistake is what is wrong with a request, "" for nothing.
func (r Route) requestMistake(req *http.Request, body []byte) string {
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return "the query cannot be read: " + err.Error()
	}
	for name, values := range query {
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
	return r.bodyMistake(req.Header.Get("Content-Type"), body)
}

func (r Route) bodyMistake(contentType string, body []byte) string {
	if kind, _, err := mime.ParseMediaType(contentType); err != nil || kind != "application/json" {
		return fmt.Sprintf("a JSON body is sent as %q", contentType)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return "the body is no JSON object: " + err.Error()
	}
	if fields == nil {
		return "the body is no JSON object: null"
	}
	for name := range fields {
		if !slices.Contains(r.Fields, name) {
			return "unknown field " + name
		}
	}
	return ""
}
