package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestForegroundHandsTheStreamsOver, and keeps the first line that the program says of itself.
func TestForegroundHandsTheStreamsOver(t *testing.T) {
	t.Parallel()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	p := Process{Args: []string{"sbx"}, Environ: []string{"WORD=told"}, Stdout: Stream{File: out}}
	require.NoError(t, p.Foreground(t.Context(), "/bin/sh", "-c", "echo $WORD; exit 3"), "its exit code is its own")
	text, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	assert.Equal(t, "told\n", string(text))
	require.EqualError(t, p.Foreground(t.Context(), "/bin/sh", "-c", "echo wrong >&2; echo hint >&2; exit 1"), "wrong")
	require.Error(t, p.Foreground(t.Context(), "/no/such/program"))
}
