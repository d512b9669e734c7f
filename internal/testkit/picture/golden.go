package picture

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Hold holds a picture of the documentation, docs/pictures/NAME.svg, to what the program shows; with update it
// writes it.
func Hold(t *testing.T, name string, lines []string, columns int, theme Theme, update bool) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "pictures", name+".svg")
	drawn := SVG(lines, columns, theme)
	if update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(drawn), 0o600))
	}
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(kept), drawn, "`make pictures` draws it again")
}
