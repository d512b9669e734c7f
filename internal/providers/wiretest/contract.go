package wiretest

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// SpecsVariable names the folder of the official descriptions.
const SpecsVariable = "SBX_SPECS"

// Spec is one official description and how it is read.
type Spec struct {
	File string // below the folder: e2b/openapi.yml
	// Server is the path prefix that its operations have on the fake: "/api", or
	// "/toolbox/{id}" for one that differs by sandbox.
	Server string
	// Answers names the schema of each operation's answer, where the description
	// of operations has none of its own (Vercel): "listSandboxes" -> a name in
	// Schemas.
	Answers map[string]string
	Schemas string // file of JSON Schemas by name
}

// Contract holds every exchange of a Server against official descriptions: an
// operation that is in none of them must stand in the list of exemptions.
type Contract struct {
	descriptions []description
	exempt       map[string]string // "METHOD /path" -> reason

	mu      sync.Mutex
	used    map[string]bool // exemptions
	checked map[string]int  // operations -> exchanges
}

// description finds operations of one file.
type description interface {
	find(method, path string) operation
}

// operation judges one exchange; it says what is wrong, nothing for well.
type operation interface {
	name() string
	request(req *http.Request, body []byte) []string
	answer(req *http.Request, status int, header http.Header, body []byte) []string
}

// LoadContract reads descriptions and the room's list of exemptions, one
// "METHOD /path  reason" a line. Without the folder the test is skipped with a
// reason; where SBX_SPECS names one that cannot be read, it fails. When the test
// ends, exemptions that nothing needed fail it too.
func LoadContract(tb testing.TB, exemptions string, specs ...Spec) *Contract {
	tb.Helper()
	folder := specsFolder(tb)
	c := &Contract{exempt: readExemptions(tb, exemptions), used: map[string]bool{}, checked: map[string]int{}}
	for _, s := range specs {
		c.descriptions = append(c.descriptions, describe(tb, folder, s))
	}
	tb.Cleanup(func() { c.settle(tb) })
	return c
}

// specsFolder finds the descriptions: where SBX_SPECS says, or in a folder
// `shared` beside the checkout.
func specsFolder(tb testing.TB) string {
	tb.Helper()
	if dir := os.Getenv(SpecsVariable); dir != "" { //nolint:forbidigo // tests alone read it
		_, err := os.Stat(dir) //nolint:gosec // whoever runs the tests says where
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
	all := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		require.GreaterOrEqual(tb, len(words), 3, "%s: an exemption is METHOD /path and a reason: %q", file, line)
		all[words[0]+" "+words[1]] = strings.Join(words[2:], " ")
	}
	return all
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

// watch lets the route answer, and judges request and answer. What is exempt may
// stream; what is described is held back until it is whole.
func (c *Contract) watch(s *Server, route Route, w http.ResponseWriter, req *http.Request, body []byte) {
	if c == nil {
		route.Serve(w, req)
		return
	}
	op := c.find(req)
	if op == nil {
		c.exempted(s, route)
		route.Serve(w, req)
		return
	}
	c.mu.Lock()
	c.checked[op.name()]++
	c.mu.Unlock()
	if reason, exempt := c.exempt[route.Name()]; exempt {
		s.wrong("%s is described, so it needs no exemption (%s)", route.Name(), reason)
	}
	for _, mistake := range op.request(req, body) {
		s.wrong("%s: the request breaks the contract: %s", route.Name(), mistake)
	}
	answer := &memory{header: http.Header{}, status: http.StatusOK}
	route.Serve(answer, req)
	for _, mistake := range op.answer(req, answer.status, answer.header, answer.body.Bytes()) {
		s.wrong("%s: the answer breaks the contract: HTTP %d: %s", route.Name(), answer.status, mistake)
	}
	answer.head(w)
	_, _ = w.Write(answer.body.Bytes())
}

func (c *Contract) find(req *http.Request) operation { //nolint:ireturn // one of two kinds
	for _, d := range c.descriptions {
		if op := d.find(req.Method, req.URL.Path); op != nil {
			return op
		}
	}
	return nil
}

func (c *Contract) exempted(s *Server, route Route) {
	c.mu.Lock()
	_, exempt := c.exempt[route.Name()]
	c.used[route.Name()] = true
	c.mu.Unlock()
	if !exempt {
		s.wrong("%s is in no description and in no exemption", route.Name())
	}
}

// undeclared are statuses that real APIs answer with and whose descriptions do
// not say so; the body of such an answer is held against the error schema.
func undeclared(status int) bool {
	return slices.Contains([]int{400, 401, 403, 404, 405, 409, 410, 422, 429, 500, 501, 502, 503, 504}, status)
}

// matched says whether a path is one of a template's, and how many of its parts
// are literal.
func matched(template, path string) (params map[string]string, literal int, ok bool) {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, 0, false
	}
	params = map[string]string{}
	for i, part := range want {
		switch {
		case strings.HasPrefix(part, "{") && strings.HasSuffix(part, "}") && got[i] != "":
			params[part[1:len(part)-1]] = got[i]
		case part == got[i]:
			literal++
		default:
			return nil, 0, false
		}
	}
	return params, literal, true
}

// below cuts a prefix off a path; a {part} of the prefix fits any part.
func below(prefix, path string) (string, bool) {
	if prefix == "" {
		return path, true
	}
	n := strings.Count(prefix, "/")
	parts := strings.SplitN(path, "/", n+2)
	if len(parts) < n+2 {
		return "", false
	}
	_, _, ok := matched(prefix, strings.Join(parts[:n+1], "/"))
	return "/" + parts[n+1], ok
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
