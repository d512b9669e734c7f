package wiretest

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Spec is one official description and how it is read.
type Spec struct {
	File string // below the folder: e2b/openapi.yml
	// Server is the path prefix that its operations have on the fake: "/api", or
	// "/toolbox/{id}" for one that differs by sandbox.
	Server string
	Host   string // where its operations are asked, as in Route.Host; "" = everywhere
	// Answers names the schema of each operation's answer, where the description
	// of operations has none of its own (Vercel): "listSandboxes" -> a name in
	// Schemas; "" says that none is published. An operation that succeeds and is
	// not named here fails the test.
	Answers map[string]string
	Schemas string // file of JSON Schemas by name
}

// Contract holds every exchange of a Server against official descriptions: an
// operation that is in none of them must stand in the list of exemptions.
type Contract struct {
	descriptions []described
	exempt       map[string]string // Route.Name -> reason

	mu      sync.Mutex
	used    map[string]bool // exemptions
	checked map[string]int  // operations -> exchanges
}

// described is a description at its place.
type described struct {
	description

	place Route // its Host alone
}

// description finds operations of one file.
type description interface {
	find(method, path string) operation
}

// operation judges one exchange; it says what is wrong, nothing for well.
type operation interface {
	name() string
	path() string // as a template, with the prefix of Spec.Server
	request(req *http.Request, body []byte) []string
	answer(req *http.Request, status int, header http.Header, body []byte) []string
}

// LoadContract reads descriptions and the room's list of exemptions, one
// "METHOD /path  reason" a line as in Route.Name, # begins a comment. Without the
// folder the test is skipped with a reason; where SBX_SPECS names one that cannot
// be read, it fails. An exemption that a description covers fails at once, one
// that nothing needed when the test ends.
func LoadContract(tb testing.TB, exemptions string, specs ...Spec) *Contract {
	tb.Helper()
	return load(tb, specsFolder(tb), exemptions, specs...)
}

func load(tb testing.TB, folder, exemptions string, specs ...Spec) *Contract {
	tb.Helper()
	c := &Contract{exempt: readExemptions(tb, exemptions), used: map[string]bool{}, checked: map[string]int{}}
	for _, s := range specs {
		c.descriptions = append(c.descriptions, described{describe(tb, folder, s), Route{Host: s.Host}})
	}
	for key, reason := range c.exempt {
		method, place, _ := strings.Cut(key, " ")
		at := strings.IndexByte(place, '/')
		if op := c.find(method, place[:at], place[at:], place[at:]); op != nil {
			tb.Errorf("%s is described as %s, so it needs no exemption (%s)", key, op.name(), reason)
		}
	}
	tb.Cleanup(func() { c.settle(tb) })
	return c
}

// settle fails the test for exemptions that are in vain, and says what was
// checked.
func (c *Contract) settle(tb testing.TB) {
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

// ask judges a request, also one that a fault will answer. The operation is nil
// for what is exempt, and for a server without a contract.
func (c *Contract) ask(s *Server, route Route, req *http.Request, body []byte) operation { //nolint:ireturn // one of two kinds
	if c == nil {
		return nil
	}
	op := c.find(req.Method, req.Host, req.URL.EscapedPath(), route.Path)
	if op == nil {
		c.exempted(s, route)
		return nil
	}
	for _, mistake := range op.request(req, body) {
		s.wrong("%s: the request breaks the contract: %s", route.Name(), mistake)
	}
	return op
}

func (c *Contract) exempted(s *Server, route Route) {
	_, exempt := c.exempt[route.Name()]
	if !exempt {
		s.wrong("%s is in no description and in no exemption", route.Name())
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used[route.Name()] = true
}

// serve lets the route answer and judges what it says. What is exempt may stream,
// and so may what becomes another protocol (a WebSocket); all else is held back
// until it is whole.
func (c *Contract) serve(s *Server, op operation, route Route, w http.ResponseWriter, req *http.Request) {
	if op == nil || req.Header.Get("Upgrade") != "" {
		route.Serve(w, req)
		return
	}
	c.mu.Lock()
	c.checked[op.name()]++
	c.mu.Unlock()
	answer := newMemory()
	route.Serve(answer, req)
	if !answer.sent && req.Context().Err() != nil {
		return // the client left, and the route with it
	}
	for _, mistake := range op.answer(req, answer.status, answer.header, answer.body.Bytes()) {
		s.wrong("%s: the answer breaks the contract: HTTP %d: %s", route.Name(), answer.status, mistake)
	}
	answer.send(w)
}

// find gives the operation that describes a path, nil without one. A route whose
// literal part falls on a parameter of the description is another call that only
// looks alike: /sandboxes/quota is not /sandboxes/{id}.
func (c *Contract) find(method, host, path, route string) operation { //nolint:ireturn // one of two kinds
	for _, d := range c.descriptions {
		if d.place.near(host) == 0 && d.place.Host != host {
			continue
		}
		if op := d.find(method, path); op != nil && covers(op.path(), route) {
			return op
		}
	}
	return nil
}

// undeclared are statuses that real APIs answer with and whose descriptions do
// not say so; the body of such an answer is held against the error schema.
func undeclared(status int) bool {
	return ahead(status) || slices.Contains([]int{400, 401, 403, 404, 405, 409, 410, 422, 429, 500, 501, 503}, status)
}

// ahead says that an answer is a gateway's in front of the API, whose body the
// API's description does not know.
func ahead(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusGatewayTimeout
}

// names says which of the query's names an operation does not know.
func names(req *http.Request, known []string) []string {
	var wrong []string
	for name := range req.URL.Query() {
		if !slices.Contains(known, name) {
			wrong = append(wrong, "no parameter is called "+name)
		}
	}
	return wrong
}
