package config

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWriteWholeReplaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b", "file.json")
	for _, content := range []string{"a long first content", "short", ""} {
		require.NoError(t, writeWhole(path, []byte(content)))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, content, string(got))
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	folder, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), folder.Mode().Perm())
}

func TestWriteWholeLeavesTheOldFileOnAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	occupied := filepath.Join(dir, "occupied")
	require.NoError(t, os.MkdirAll(filepath.Join(occupied, "child"), 0o700))
	require.Error(t, writeWhole(occupied, []byte("x")), "a folder that is not empty cannot be replaced")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1, "no draft is left")

	file := filepath.Join(dir, "occupied", "child", "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.Error(t, writeWhole(filepath.Join(file, "below"), []byte("x")))
}

// Readers see one whole content or the other while writers replace the file.
func TestWriteWholeIsNeverSeenHalfDone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	whole := map[string]bool{}
	for i := range 4 {
		whole[content(i)] = true
	}
	require.NoError(t, writeWhole(path, []byte(content(0))))
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range 5 {
				assert.NoError(t, writeWhole(path, []byte(content(i))))
			}
		})
	}
	for range 200 {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, whole[string(got)], "a part of a file was seen")
	}
	writers.Wait()
}

func content(i int) string {
	return fmt.Sprintf("%0*d", 10_000*(i+1), i)
}

func TestWriteNewNeverReplaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "file")
	require.NoError(t, writeNew(path, []byte("first")))
	require.ErrorIs(t, writeNew(path, []byte("second")), os.ErrExist)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "first", string(got))
}

// Many processes meet a fresh home at once: each loads, exactly one writes the
// starter file, and the record of trust is whole afterwards.
func TestManyAtOnceOnAFreshHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.project(widening)
	var all sync.WaitGroup
	var mu sync.Mutex
	written := 0
	for range 32 {
		all.Go(func() {
			if _, err := Init(w.input(), ""); err == nil {
				mu.Lock()
				defer mu.Unlock()
				written++
			}
		})
		all.Go(func() {
			_, err := Trust(t.Context(), w.input(), "")
			assert.NoError(t, err)
		})
	}
	all.Wait()
	assert.Equal(t, 1, written)
	assert.Equal(t, 99, w.must().Limits.MaxDelete)
}
