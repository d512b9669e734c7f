package wiretest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

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
