package wiretest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
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
	routes  map[string][]Route
	calls   []Call
	changes int
	faults  []*Fault
	reading int
	ended   chan struct{}
	flooded int64
}

// New makes a server without routes; it ends with the test.
func New(t T, o Options) *Server {
	s := &Server{t: t, o: o, mux: http.NewServeMux(), pipe: newPipes(), routes: map[string][]Route{}, ended: make(chan struct{})}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.mux.HandleFunc("/", s.unknown)
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

func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	s.wrong("unknown call %s %s%s", r.Method, r.Host, r.URL)
	w.WriteHeader(http.StatusTeapot)
}

// ServeHTTP lets the server stand behind a listener of the caller's own. A panic
// of a route fails the test and cuts the connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p != http.ErrAbortHandler { //nolint:errorlint // the value that net/http knows
			s.wrong("%s %s: panic: %v", r.Method, r.URL, p)
		}
		panic(http.ErrAbortHandler)
	}()
	if !tidy(r.URL.EscapedPath()) { // a ServeMux redirects it to what was perhaps meant
		s.unknown(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// tidy says that a path has no empty and no dotted parts.
func tidy(p string) bool {
	clean := path.Clean(p)
	return p == clean || (clean != "/" && p == clean+"/" && !strings.HasSuffix(clean, "/"))
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
	op := s.o.Contract.ask(s, route, req, body)
	if f := s.fault(route, req); f != nil {
		s.trouble(f, route, w, req)
		return
	}
	s.o.Contract.serve(s, op, route, w, req)
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
func (s *Server) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	s.pipe.begin(func() { _ = s.http.Serve(s.pipe) })
	return s.pipe.dial(ctx, network)
}

// Unplug makes each Dial fail with an error from now on and breaks the
// connections that are open; nil plugs the server in again. An error of looking
// up or connecting stands in a *net.OpError, as net.Dialer does it.
func (s *Server) Unplug(err error) { s.pipe.unplug(err) }

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
