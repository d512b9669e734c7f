package metrics

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

// TestAFullDiskKeepsTheOldFile: /dev/full stands in for a disk without room.
func TestAFullDiskKeepsTheOldFile(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here:", err)
	}
	t.Cleanup(func() { _ = full.Close() })
	err = fill(full, "a 1\n")
	require.ErrorIs(t, err, syscall.ENOSPC)
	told := unwritable(err)
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(told))
	assert.Contains(t, fault.HintOf(told), "the disk is full")
}

func TestWhatTheFileSystemSays(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]string{
		syscall.EROFS: "ReadWritePaths", syscall.EDQUOT: "full", syscall.EISDIR: "not a folder", syscall.EACCES: "may this user write",
	} {
		err := unwritable(&fs.PathError{Op: "open", Path: "p", Err: cause})
		assert.Contains(t, fault.HintOf(err), want)
		require.ErrorIs(t, err, cause)
	}
}

// TestADraftThatCannotBeFilledIsTakenAway: the folder's file is in place of a
// draft that was closed under it.
func TestADraftThatCannotBeFilledIsTakenAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "sbx.prom")
	require.NoError(t, os.Mkdir(path, 0o755))
	require.Error(t, replace(path, "a 1\n"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}
