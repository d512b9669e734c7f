package wiretest

import (
	"net/http"
	"testing"
)

// SpecsVariable names the folder of the official descriptions.
const SpecsVariable = "SBX_SPECS"

// Spec is one official description and how it is read.
type Spec struct {
	File   string // below the folder: e2b/openapi.yml
	Server string // the path prefix that its operations have on the fake, "/api"
	// Only keeps the description from judging calls that start otherwise; "" = all.
	Only string
}

// Contract holds every exchange of a Server against official descriptions: an
// operation that is in none of them must stand in the list of exemptions.
type Contract struct{}

// LoadContract reads descriptions and the room's list of exemptions, one
// "METHOD /path  reason" a line. Without the folder the test is skipped with a
// reason; where SBX_SPECS names one that cannot be read, it fails.
func LoadContract(t testing.TB, exemptions string, specs ...Spec) *Contract {
	t.Helper()
	t.Skip("not written yet")
	return nil
}

// watch lets the route answer, and judges request and answer.
func (c *Contract) watch(_ *Server, route Route, w http.ResponseWriter, req *http.Request, _ []byte) {
	route.Serve(w, req)
}
