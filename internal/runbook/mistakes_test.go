package runbook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMistakes compares all that reading finds in each file with the golden beside it.
func TestMistakes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/mistakes/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			_, found := Parse("my.yaml", content)
			require.NotEmpty(t, found)
			var got strings.Builder
			for _, f := range found {
				assert.Equal(t, RuleSyntax, f.Rule)
				fmt.Fprintf(&got, "%s: %s\n", f.Place(), f.Message)
				if f.Hint != "" {
					fmt.Fprintf(&got, "    hint: %s\n", f.Hint)
				}
				for _, line := range f.Excerpt {
					fmt.Fprintf(&got, "    |%s\n", strings.TrimRight(line, " \t"))
				}
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), got.String())
		})
	}
}
