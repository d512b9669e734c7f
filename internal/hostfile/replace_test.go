package hostfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/hostfile"
)

func TestReplace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file.json")
	for _, content := range []string{"a long first content", "short", ""} {
		require.NoError(t, hostfile.Replace(path, []byte(content), 0o600))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, content, string(got))
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
}

func TestReplaceLeavesTheOldFileOnAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	occupied := filepath.Join(dir, "occupied")
	require.NoError(t, os.MkdirAll(filepath.Join(occupied, "child"), 0o700))
	require.Error(t, hostfile.Replace(occupied, []byte("x"), 0o600), "a folder that is not empty cannot be replaced")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file is left")

	file := filepath.Join(dir, "occupied", "child", "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.Error(t, hostfile.Replace(filepath.Join(file, "below"), []byte("x"), 0o600))
}

// Readers see one whole content or the other while writers replace the file.
func TestReplaceIsNeverSeenHalfDone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	whole := map[string]bool{}
	for i := range 4 {
		whole[content(i)] = true
	}
	require.NoError(t, hostfile.Replace(path, []byte(content(0)), 0o600))
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range 5 {
				assert.NoError(t, hostfile.Replace(path, []byte(content(i)), 0o600))
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

func TestCreateNeverReplaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, hostfile.Create(path, []byte("first"), 0o600))
	require.ErrorIs(t, hostfile.Create(path, []byte("second"), 0o600), os.ErrExist)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "first", string(got))
}
