package wiretest

import (
	"encoding/json"
	"fmt"
	"iter"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Route is one call that the fake knows.
type Route struct {
	Method string
	// Host is where the call is asked, for a fake of several hosts: a name
	// without port, or "*.example.com" for each below it; "" = everywhere. Of
	// several routes that differ in Host alone, the closest answers.
	Host string
	Path string // as in http.ServeMux: /v2/sandboxes/{id}
	// Query lists the names that may stand in the query, once each; "name..."
	// beside "name" allows several.
	Query   []string
	Headers []string // that must be there and not empty
	Fields  []string // the top-level fields that a JSON body may have; nil = no body
	Raw     bool     // any body, JSON or not
	Changes bool     // it changes a sandbox's life
	Serve   http.HandlerFunc
}

// Name is how faults and calls name a route: "GET /v2/sandboxes/{id}", with a
// host "GET api.example.com/v2/sandboxes/{id}".
func (r Route) Name() string { return r.Method + " " + r.Host + r.Path }

// wildcards gives the names of the parts of the path that differ from call to call.
func (r Route) wildcards() iter.Seq[string] {
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
			s.mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) { s.pick(pattern, w, req) })
		}
	}
}

// pick lets the route answer that is closest to the host. A ServeMux takes HEAD
// for GET; here they are two calls.
func (s *Server) pick(pattern string, w http.ResponseWriter, req *http.Request) {
	var closest Route
	most := 0
	s.mu.Lock()
	for _, r := range s.routes[pattern] {
		if n := r.near(req.Host); n > most && r.Method == req.Method {
			most, closest = n, r
		}
	}
	s.mu.Unlock()
	if most == 0 {
		s.unknown(w, req)
		return
	}
	s.serve(closest, w, req)
}

// near says how closely a route's host fits, 0 for not at all.
func (r Route) near(host string) int {
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

// mistake says what is wrong with a request, "" for nothing.
func (r Route) mistake(req *http.Request, body []byte) string {
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
	return r.mistaken(req.Header.Get("Content-Type"), body)
}

// mistaken says what is wrong with a JSON body.
func (r Route) mistaken(contentType string, body []byte) string {
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
