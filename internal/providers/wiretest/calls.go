package wiretest

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Call is one request that the server received.
type Call struct {
	Route  string
	URL    string // path and query
	Header http.Header
	Body   []byte
	At     time.Time
}

func (s *Server) recordCall(route Route, req *http.Request, body []byte) {
	s.mu.Lock()
	s.calls = append(s.calls, Call{route.Name(), req.URL.String(), req.Header.Clone(), body, time.Now()})
	reads := s.reading > 0 && route.Changes
	if route.Changes {
		s.changes++
	}
	s.mu.Unlock()
	if reads {
		s.failTest("%s changes a sandbox's life on a read path", route.Name())
	}
}

// Calls lists the requests to a route, in the order they came; "" = all.
func (s *Server) Calls(route string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c Call) bool { return route != "" && c.Route != route })
}

// Changes counts the requests to routes that change a sandbox's life, so that a test can check
// that a read makes none.
func (s *Server) Changes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// Reading runs f; a call in f that changes a sandbox's life fails the test.
func (s *Server) Reading(f func()) {
	s.addReading(1)
	defer s.addReading(-1)
	f()
}

func (s *Server) addReading(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading += more
}

// JSON answers with a value. A value that cannot be encoded panics, which fails the test.
func JSON(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// Decode decodes a request's JSON body; invalid fields stay zero.
func Decode(r *http.Request, into any) {
	_ = json.NewDecoder(r.Body).Decode(into)
}

// Page is the page of rows that a query asks for by "cursor", an index, and "limit", at most
// size; next is the cursor of the next page, nil for the last one. With loops the cursor is
// ignored, so that the first page comes again.
func Page[R any](rows []R, query url.Values, size int, loops bool) (page []R, next any) {
	from, _ := strconv.Atoi(query.Get("cursor"))
	if loops {
		from = 0
	}
	limit, _ := strconv.Atoi(query.Get("limit"))
	limit = min(max(limit, 1), size)
	rows = rows[min(from, len(rows)):]
	if len(rows) > limit {
		return rows[:limit], strconv.Itoa(from + limit)
	}
	return rows, nil
}

// Dashboard answers with a web page, as a service does outside its API.
func Dashboard(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	_, _ = w.Write([]byte("<!doctype html><title>Dashboard</title>"))
}

type recordedAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
	sent   bool
}

func newRecordedAnswer() *recordedAnswer {
	return &recordedAnswer{header: http.Header{}, status: http.StatusOK}
}

func (m *recordedAnswer) Header() http.Header { return m.header }

func (m *recordedAnswer) WriteHeader(status int) {
	if !m.sent {
		m.status, m.sent = status, true
	}
}

func (m *recordedAnswer) Write(b []byte) (int, error) {
	m.sent = true
	return m.body.Write(b)
}

func (m *recordedAnswer) sendHeaders(w http.ResponseWriter) {
	maps.Copy(w.Header(), m.header)
	w.WriteHeader(m.status)
}

func (m *recordedAnswer) sendAll(w http.ResponseWriter) {
	m.sendHeaders(w)
	_, _ = w.Write(m.body.Bytes())
}

// coversRoute says that every literal part of a route is literal in a template, too.
func coversRoute(template, route string) bool {
	parts := strings.Split(template, "/")
	for i, part := range strings.Split(route, "/") {
		if i >= len(parts) || (!isVariable(part) && parts[i] != part) {
			return strings.HasSuffix(part, "...}")
		}
	}
	return true
}

// isVariable says that a part stands for any text: {id}.
func isVariable(part string) bool {
	return strings.HasPrefix(part, "{") && strings.HasSuffix(part, "}")
}

// MatchPath says whether an escaped path matches a template, and how many of its parts are
// literal.
func MatchPath(template, path string) (params map[string]string, literal int, ok bool) {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, 0, false
	}
	params = map[string]string{}
	for i, part := range want {
		text, err := url.PathUnescape(got[i])
		switch {
		case err != nil:
			return nil, 0, false
		case isVariable(part) && text != "":
			params[part[1:len(part)-1]] = text
		case part == text:
			literal++
		default:
			return nil, 0, false
		}
	}
	return params, literal, true
}
