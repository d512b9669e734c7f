//go:build unix

package config

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A pipe without a writer would hold a reader for ever.
func TestOnlyAnExplicitFileMayBeAPipe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := filepath.Join(w.home, ".config", "sbx", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	assert.Equal(t, "DIR/home/.config/sbx/config.yaml: is not a regular file", w.fails())
	w = newWorld(t)
	w.file = filepath.Join(w.root, "pipe")
	require.NoError(t, syscall.Mkfifo(w.file, 0o600))
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(w.file, []byte("limits: {max_delete: 3}"), 0o600) }()
	assert.Equal(t, 3, w.must().Limits.MaxDelete)
	require.NoError(t, <-written)
}
