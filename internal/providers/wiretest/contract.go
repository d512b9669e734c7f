package wiretest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Spec is one official API description.
type Spec struct {
	File string // below the folder: e2b/openapi.yml
	// Server is the path prefix of its operations in the fake: "/api", or "/toolbox/{id}" for
	// one that differs by sandbox.
	Server string
	Host   string // of its operations, as in Route.Host; "" = every host
	// Answers names the schema of each operation's answer where the description has none
	// (Vercel): "listSandboxes" -> a name in Schemas; "" = no schema is published. An operation
	// that succeeds and has no entry here fails the test.
	Answers map[string]string
	Schemas string // file of JSON Schemas by name
}

// Contract compares every exchange of a Server with the official descriptions. An operation
// that is in none of them must be in the list of exemptions.
type Contract struct {
	descriptions []described
	exempt       map[string]string // Route.Name -> reason

	mu      sync.Mutex
	used    map[string]bool // exemptions
	checked map[string]int  // operations -> exchanges
}

type described struct {
	description

	place Route // with a Host only
}

type description interface {
	findOperation(method, path string) operation
}

// operation checks one exchange; the checks return the mistakes.
type operation interface {
	operationName() string
	pathTemplate() string // as a template, with the prefix of Spec.Server
	checkRequest(req *http.Request, body []byte) []string
	checkAnswer(req *http.Request, status int, header http.Header, body []byte) []string
}

// LoadContract reads descriptions and a list of exemptions, with "METHOD /path  reason" on each
// line as in Route.Name; # begins a comment. Without the folder of descriptions the test is
// skipped; where SBX_SPECS names a folder that cannot be read, it fails. It also fails for an
// exemption that a description covers and for one that was not used.
func LoadContract(tb testing.TB, exemptions string, specs ...Spec) *Contract {
	tb.Helper()
	return loadContract(tb, specsFolder(tb), exemptions, specs...)
}

func loadContract(tb testing.TB, folder, exemptions string, specs ...Spec) *Contract {
	tb.Helper()
	c := &Contract{exempt: readExemptions(tb, exemptions), used: map[string]bool{}, checked: map[string]int{}}
	for _, s := range specs {
		c.descriptions = append(c.descriptions, described{describe(tb, folder, s), Route{Host: s.Host}})
	}
	for key, reason := range c.exempt {
		method, place, _ := strings.Cut(key, " ")
		at := strings.IndexByte(place, '/')
		if op := c.findOperation(method, place[:at], place[at:], place[at:]); op != nil {
			tb.Errorf("%s is described as %s, so it needs no exemption (%s)", key, op.operationName(), reason)
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
func (c *Contract) checkRequest(s *Server, route Route, req *http.Request, body []byte) operation { //nolint:ireturn // one of two kinds
	if c == nil {
		return nil
	}
	op := c.findOperation(req.Method, req.Host, req.URL.EscapedPath(), route.Path)
	if op == nil {
		c.checkExempt(s, route)
		return nil
	}
	for _, mistake := range op.checkRequest(req, body) {
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
func (c *Contract) serveChecked(s *Server, op operation, route Route, w http.ResponseWriter, req *http.Request) {
	if op == nil || req.Header.Get("Upgrade") != "" {
		route.Serve(w, req)
		return
	}
	c.mu.Lock()
	c.checked[op.operationName()]++
	c.mu.Unlock()
	answer := newRecordedAnswer()
	route.Serve(answer, req)
	if !answer.sent && req.Context().Err() != nil {
		return // the client has disconnected, and the route has returned
	}
	for _, mistake := range op.checkAnswer(req, answer.status, answer.header, answer.body.Bytes()) {
		s.failTest("%s: the answer breaks the contract: HTTP %d: %s", route.Name(), answer.status, mistake)
	}
	answer.sendAll(w)
}

// findOperation is the operation that describes a path, nil without one. A route with a literal
// part in place of a parameter is another call: /sandboxes/quota is not /sandboxes/{id}.
func (c *Contract) findOperation(method, host, path, route string) operation { //nolint:ireturn // one of two kinds
	for _, d := range c.descriptions {
		if d.place.hostMatch(host) == 0 && d.place.Host != host {
			continue
		}
		if op := d.findOperation(method, path); op != nil && coversRoute(op.pathTemplate(), route) {
			return op
		}
	}
	return nil
}

// isPlausibleStatus says that real APIs answer with this status although their descriptions do
// not have it; the body of such an answer is compared with the error schema.
func isPlausibleStatus(status int) bool {
	return isGatewayStatus(status) || slices.Contains([]int{400, 401, 403, 404, 405, 409, 410, 422, 429, 500, 501, 503}, status)
}

// isGatewayStatus says that the answer is that of a gateway, which the API's description does
// not cover.
func isGatewayStatus(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusGatewayTimeout
}

// unknownQueryNames are mistakes about the query's names that an operation does not have.
func unknownQueryNames(req *http.Request, known []string) []string {
	var wrong []string
	for name := range req.URL.Query() {
		if !slices.Contains(known, name) {
			wrong = append(wrong, "no parameter is called "+name)
		}
	}
	return wrong
}

// SpecsVariable names the folder of the official descriptions.
const SpecsVariable = "SBX_SPECS"

// specsFolder finds the descriptions: in the folder of SBX_SPECS, or in a folder `shared` beside
// the checkout.
func specsFolder(tb testing.TB) string {
	tb.Helper()
	if dir := os.Getenv(SpecsVariable); dir != "" { //nolint:forbidigo // for tests only
		_, err := os.Stat(dir) //nolint:gosec // set by the developer
		require.NoError(tb, err, SpecsVariable)
		return dir
	}
	dir, err := os.Getwd()
	require.NoError(tb, err)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
	}
	specs := filepath.Join(filepath.Dir(dir), "shared", "specs")
	if _, err := os.Stat(specs); err != nil {
		tb.Skipf("the official descriptions are not here; set %s to their folder", SpecsVariable)
	}
	return specs
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
