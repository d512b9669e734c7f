package wiretest

import (
	"net/http"
	"slices"
	"time"
)

// Call is one request that came.
type Call struct {
	Route  string
	URL    string // path and query
	Header http.Header
	Body   []byte
	At     time.Time
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
	s.read(1)
	defer s.read(-1)
	f()
}

func (s *Server) read(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading += more
}
