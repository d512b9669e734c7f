package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

// TestGuideToACommandLeadsToGreen does what the guide says: its files and
// changes are laid over the checkout, and the package is tested.
func TestGuideToACommandLeadsToGreen(t *testing.T) {
	t.Parallel()
	overlay := layOver(t, page(t, "docs/ADDING-A-COMMAND.md")) // each time, since it is quick
	tiertest.SkipUnlessLong(t, "builds the guide to a command over the checkout")
	goTool(t)
	out := mustGo(t, "test", "-v", "-overlay", overlay, "-run", "^TestCount|^TestEvery.*/.*count|^TestEveryVerbIsListed", "./internal/commands")
	for _, test := range []string{"TestCountCountsByState", "TestEveryExampleRuns/sbx_count", "TestEveryVerbPrintsOneDocument/count_one_fails", "TestEveryVerbIsListed"} {
		assert.Contains(t, out, "--- PASS: "+test)
	}
	mustGo(t, "vet", "-overlay", overlay, "./internal/documents")
}

// TestGuideToAProviderLeadsToGreen does the same for the other guide. Its room
// has no folder on disk, so its test is built first and run elsewhere.
func TestGuideToAProviderLeadsToGreen(t *testing.T) {
	t.Parallel()
	overlay := layOver(t, page(t, "docs/ADDING-A-PROVIDER.md")) // each time, since it is quick
	tiertest.SkipUnlessLong(t, "builds the guide to a provider over the checkout")
	goTool(t)
	binary := filepath.Join(t.TempDir(), "folder.test")
	mustGo(t, "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, "./internal/providers/folder")
	cmd := exec.CommandContext(t.Context(), binary, "-test.v")
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "the guide leads to red:\n%s", out)
	assert.Contains(t, string(out), "--- PASS: TestConformance/list_reads_every_page_once")
	mustGo(t, "build", "-overlay", overlay, "./internal/cli")
	mustGo(t, "test", "-overlay", overlay, "-run", "TestPlantedImportsAreFound", "./internal/arch")
}

func goTool(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go tool on PATH")
	}
}

func mustGo(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "the guide leads to red:\n%s", out)
	return string(out)
}

// layOver writes the files of a guide below a folder of its own and returns the
// list by which the go tool finds them. The title of a block is its file.
func layOver(t *testing.T, text string) string {
	t.Helper()
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	files := map[string]string{}
	for _, b := range blocks(text, "") {
		switch b.language {
		case "go":
			files[b.title] = b.text()
		case "diff":
			if files[b.title] == "" {
				files[b.title] = page(t, b.title)
			}
			files[b.title] = patch(t, files[b.title], b)
		}
	}
	require.NotEmpty(t, files)
	dir, replace := t.TempDir(), map[string]string{}
	for name, text := range files {
		copied := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		require.NoError(t, os.WriteFile(copied, []byte(text), 0o600))
		replace[filepath.Join(top, filepath.FromSlash(name))] = copied
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	overlay := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, list, 0o600))
	return overlay
}

// patch applies a block of lines that start with a space, - or +. What stands
// in the file must be there once; its last line may be the start of one.
func patch(t *testing.T, text string, b block) string {
	t.Helper()
	var before, after []string
	for _, line := range b.lines {
		require.NotEmpty(t, line)
		if line[0] != '+' {
			before = append(before, line[1:])
		}
		if line[0] != '-' {
			after = append(after, line[1:])
		}
	}
	old := strings.Join(before, "\n")
	require.Equal(t, 1, strings.Count(text, old), "line %d of the guide: %s does not hold this once:\n%s", b.line, b.title, old)
	return strings.Replace(text, old, strings.Join(after, "\n"), 1)
}

func TestPatch(t *testing.T) {
	t.Parallel()
	b := block{title: "x", lines: []string{" b", "-c", "+d", "+e"}}
	assert.Equal(t, "a\nb\nd\nec\n", patch(t, "a\nb\ncc\n", b))
}
