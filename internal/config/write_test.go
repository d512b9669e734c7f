package config

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file of a fresh home is made with its folders, for this user alone.
func TestWriteFileMakesItsFolders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b", "file.json")
	require.NoError(t, writeFile(path, nil, modeFile))
	require.ErrorIs(t, createFile(path, nil), os.ErrExist)
	folder, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), folder.Mode().Perm())
	require.NoError(t, createFile(filepath.Join(filepath.Dir(path), "c", "file"), nil))
}

// Many processes meet a fresh home at once: exactly one writes the starter file.
func TestManyAtOnceOnAFreshHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	written := 0
	for range 32 {
		all.Go(func() {
			if _, err := Init(w.input(), "", ""); err == nil {
				mu.Lock()
				defer mu.Unlock()
				written++
			}
		})
	}
	all.Wait()
	assert.Equal(t, 1, written)
	assert.True(t, w.must().File.Found)
}
