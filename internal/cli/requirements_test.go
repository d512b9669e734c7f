package cli_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/check"
	"sbx/internal/ops/look"
	"sbx/internal/requirement"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/triage"
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

// TestEveryNameIsOnThePage: the column of names has what sbx uses, and nothing else.
func TestEveryNameIsOnThePage(t *testing.T) {
	t.Parallel()
	unlisted := []string{"ending_long"} // no text of an operator asks for it
	used := slices.Clone(unlisted)
	for _, c := range slices.Concat(check.Alerts(), check.Targets()) {
		used = append(used, c.ID)
	}
	for _, f := range slices.Concat(check.Flags(&check.Subject{}, time.Time{}), triage.Flags(sandbox.Sandbox{}, triage.Signals{}, triage.DefaultThresholds(), time.Time{})) {
		used = append(used, f.ID)
	}
	for _, q := range look.InvestigationQuestions() {
		used = append(used, q.ID)
	}
	for _, f := range task.Figures(nil, time.Time{}) {
		used = append(used, f.ID)
	}
	used = append(used, "cleanup_overdue") // look.flagOfCleanup
	for _, name := range used {
		assert.Equal(t, slices.Contains(unlisted, name), requirement.Of(name) == "", name)
	}
	for id, names := range requirement.All() {
		for _, name := range names {
			assert.Contains(t, used, name, id)
		}
	}
}
