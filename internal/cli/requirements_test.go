package cli_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRequirementIDsAreOnTheirPage: what a comment, a check or a runbook cites as R82 stands there once, and
// nothing is cited that is not in the repository.
func TestRequirementIDsAreOnTheirPage(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (R\d+|S[0-3]-\d+) \|`).FindAllStringSubmatch(page(t, "docs/REQUIREMENTS.md"), -1) {
		assert.False(t, known[row[1]], "%s is there twice", row[1])
		known[row[1]] = true
	}
	require.Greater(t, len(known), 300)
	id, foreign := regexp.MustCompile(`\b(?:R\d{1,3}|S[0-3]-\d{1,2})\b`), regexp.MustCompile(`DESIGN( section|\.md)|ACCEPTANCE|\bCLI\.md`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !slices.Contains([]string{".go", ".md", ".yaml"}, filepath.Ext(path)) || strings.HasSuffix(path, "requirements_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, word := range id.FindAllString(string(text), -1) {
			if !known[word] {
				assert.Failf(t, "no such requirement", "%s cites %s", path, word)
			}
		}
		for _, word := range foreign.FindAllString(string(text), -1) {
			assert.Failf(t, "not in the repository", "%s cites %s", path, word)
		}
		return err
	})
	require.NoError(t, err)
}
