package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Bounds of a file without tests, in lines (CONTRIBUTING.md); the linter holds those of a function.
const (
	longestFile = 400
	medianFile  = 170
)

// TestFilesStaySmall: what is longer is parted by what its parts are about.
func TestFilesStaySmall(t *testing.T) {
	t.Parallel()
	var lengths []int
	for _, folder := range []string{"cmd", "internal", "tools"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", "..", folder), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			text, err := os.ReadFile(file)
			lines := strings.Count(string(text), "\n")
			lengths = append(lengths, lines)
			assert.LessOrEqual(t, lines, longestFile, file)
			return err
		}))
	}
	slices.Sort(lengths)
	assert.LessOrEqual(t, lengths[len(lengths)/2], medianFile, "lines of the median of %d files", len(lengths))
}
