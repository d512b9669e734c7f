package wiretest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Contract compares every exchange of a Server with the official descriptions. An operation
// that is in none of them must be in the list of exemptions.
type Contract struct {
	descriptions []Description
	exempt       map[string]string // Route.Name -> reason

	mu      sync.Mutex
	used    map[string]bool // exemptions
	checked map[string]int  // operations -> exchanges
}

// Description has the operations of one official description (room apispec reads them).
type Description interface {
	// HostName is the host of its operations, as in Route.Host; "" = every host.
	HostName() string
	// FindOperation is nil for a call that it does not describe.
	FindOperation(method, path string) Operation
}

// Operation checks one exchange; the checks return the mistakes.
type Operation interface {
	Name() string
	PathTemplate() string // with the prefix of its server
	CheckRequest(req *http.Request, body []byte) []string
	CheckAnswer(req *http.Request, status int, header http.Header, body []byte) []string
}

// NewContract reads a file of exemptions, with "METHOD /path  reason" on each line as in
// Route.Name; # begins a comment. It fails the test for an exemption that a description covers
// and for one that was not used.
func NewContract(tb testing.TB, exemptions string, descriptions ...Description) *Contract {
	tb.Helper()
	c := &Contract{descriptions: descriptions, exempt: readExemptions(tb, exemptions), used: map[string]bool{}, checked: map[string]int{}}
	for key, reason := range c.exempt {
		method, place, _ := strings.Cut(key, " ")
		at := strings.IndexByte(place, '/')
		if op := c.findOperation(method, place[:at], place[at:], place[at:]); op != nil {
			tb.Errorf("%s is described as %s, so it needs no exemption (%s)", key, op.Name(), reason)
		}
	}
	tb.Cleanup(func() { c.reportUnused(tb) })
	return c
}

// reportUnused fails the test for exemptions that were not used, and logs what was checked.
func (c *Contract) reportUnused(tb testing.TB) {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.exempt {
		if !c.used[key] {
			tb.Errorf("the exemption %q is not needed", key)
		}
	}
	exchanges := 0
	for _, n := range c.checked {
		exchanges += n
	}
	if exchanges == 0 && len(c.descriptions) > 0 {
		tb.Errorf("no exchange was held against a description")
	}
	tb.Logf("contract: %d operations, %d exchanges, %d exemptions", len(c.checked), exchanges, len(c.used))
}

// checkRequest checks a request, also one that a fault will answer. The operation is nil for an
// exempt request and for a server without a contract.
func (c *Contract) checkRequest(s *Server, route Route, req *http.Request, body []byte) Operation { //nolint:ireturn // one of two kinds
	if c == nil {
		return nil
	}
	op := c.findOperation(req.Method, req.Host, req.URL.EscapedPath(), route.Path)
	if op == nil {
		c.checkExempt(s, route)
		return nil
	}
	for _, mistake := range op.CheckRequest(req, body) {
		s.failTest("%s: the request breaks the contract: %s", route.Name(), mistake)
	}
	return op
}

func (c *Contract) checkExempt(s *Server, route Route) {
	_, exempt := c.exempt[route.Name()]
	if !exempt {
		s.failTest("%s is in no description and in no exemption", route.Name())
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used[route.Name()] = true
}

// serveChecked lets the route answer and checks the answer. Exempt answers and upgrades to
// another protocol (WebSocket) may stream; any other answer is sent when it is complete.
func (c *Contract) serveChecked(s *Server, op Operation, route Route, w http.ResponseWriter, req *http.Request) {
	if op == nil || req.Header.Get("Upgrade") != "" {
		route.Serve(w, req)
		return
	}
	c.mu.Lock()
	c.checked[op.Name()]++
	c.mu.Unlock()
	answer := newRecordedAnswer()
	route.Serve(answer, req)
	if !answer.sent && req.Context().Err() != nil {
		return // the client has disconnected, and the route has returned
	}
	for _, mistake := range op.CheckAnswer(req, answer.status, answer.header, answer.body.Bytes()) {
		s.failTest("%s: the answer breaks the contract: HTTP %d: %s", route.Name(), answer.status, mistake)
	}
	answer.sendAll(w)
}

// findOperation is the operation that describes a path, nil without one. A route with a literal
// part in place of a parameter is another call: /sandboxes/quota is not /sandboxes/{id}.
func (c *Contract) findOperation(method, host, path, route string) Operation { //nolint:ireturn // one of two kinds
	for _, d := range c.descriptions {
		if (Route{Host: d.HostName()}).hostMatch(host) == 0 && d.HostName() != host {
			continue
		}
		if op := d.FindOperation(method, path); op != nil && coversRoute(op.PathTemplate(), route) {
			return op
		}
	}
	return nil
}

func readExemptions(tb testing.TB, file string) map[string]string {
	tb.Helper()
	f, err := os.Open(file)
	require.NoError(tb, err)
	defer func() { _ = f.Close() }()
	all, err := parseExemptions(f)
	require.NoError(tb, err, file)
	return all
}

// parseExemptions reads "METHOD [host]/path reason" lines; # begins a comment.
func parseExemptions(r io.Reader) (map[string]string, error) {
	all := map[string]string{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if len(words) < 3 || !strings.Contains(words[1], "/") {
			return nil, fmt.Errorf("an exemption is METHOD /path and a reason: %q", lines.Text())
		}
		key := words[0] + " " + words[1]
		if _, twice := all[key]; twice {
			return nil, errors.New("two exemptions of " + key)
		}
		all[key] = strings.Join(words[2:], " ")
	}
	return all, lines.Err()
}

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

// Counter counts the requests to some routes until it is called; none = to all.
func (s *Server) Counter(routes ...string) func() int {
	return func() int {
		return len(slices.DeleteFunc(s.Calls(""), func(c Call) bool { return len(routes) > 0 && !slices.Contains(routes, c.Route) }))
	}
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
