// Package apispec reads the official API descriptions with which wiretest compares every
// exchange. It is a room of its own because its libraries initialize for 5 ms, which every
// process that a test starts would pay.
package apispec

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/wiretest"
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

// LoadContract reads descriptions and a file of exemptions (wiretest.NewContract). Without the
// folder of descriptions the test is skipped; where SBX_SPECS names a folder that cannot be read,
// it fails.
func LoadContract(tb testing.TB, exemptions string, specs ...Spec) *wiretest.Contract {
	tb.Helper()
	return loadContract(tb, specsFolder(tb), exemptions, specs...)
}

// LoadModuleContract is LoadContract for descriptions that a Go module of the build has.
func LoadModuleContract(tb testing.TB, exemptions, module string, specs ...Spec) *wiretest.Contract {
	tb.Helper()
	dir, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	require.NoError(tb, err)
	return loadContract(tb, strings.TrimSpace(string(dir)), exemptions, specs...)
}

func loadContract(tb testing.TB, folder, exemptions string, specs ...Spec) *wiretest.Contract {
	tb.Helper()
	var all []wiretest.Description
	for _, s := range specs {
		all = append(all, describe(tb, folder, s))
	}
	return wiretest.NewContract(tb, exemptions, all...)
}

// SpecsVariable names the folder of the official descriptions.
const SpecsVariable = "SBX_SPECS"

// specsFolder finds the descriptions: in the folder of SBX_SPECS, or in a folder `shared` beside
// the checkout.
func specsFolder(tb testing.TB) string {
	tb.Helper()
	specs, found := findSpecs(tb)
	if !found {
		tb.Skipf("the official descriptions are not here; set %s to their folder", SpecsVariable)
	}
	return specs
}

// SkipWhereDescribed skips a run of the conformance suite where the descriptions are: TestContract
// of the same package runs the same suite there, and compares it with them besides.
func SkipWhereDescribed(tb testing.TB) {
	tb.Helper()
	if _, found := findSpecs(tb); found {
		tb.Skip("TestContract runs the suite with the official descriptions")
	}
}

func findSpecs(tb testing.TB) (folder string, found bool) {
	tb.Helper()
	if dir := os.Getenv(SpecsVariable); dir != "" { //nolint:forbidigo // for tests only
		_, err := os.Stat(dir) //nolint:gosec // set by the developer
		require.NoError(tb, err, SpecsVariable)
		return dir, true
	}
	dir, err := os.Getwd()
	require.NoError(tb, err)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
	}
	specs := filepath.Join(filepath.Dir(dir), "shared", "specs")
	_, err = os.Stat(specs)
	return specs, err == nil
}
