package wiretest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// SpecsVariable names the folder of the official descriptions.
const SpecsVariable = "SBX_SPECS"

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
