//go:build unix

package hostfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// /dev/full stands in for a disk without room.
func TestAFullDiskIsAnError(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here:", err)
	}
	t.Cleanup(func() { _ = full.Close() })
	require.ErrorIs(t, writeAndSync(full, []byte("a"), 0o600), syscall.ENOSPC)
}

func TestModeIsSetOnlyWhereItDiffers(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	require.NoError(t, file.Chmod(0o600))
	closed, err := os.Open(file.Name())
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.Error(t, setMode(file, 0o600), "a closed file has no mode")
	require.NoError(t, setMode(closed, 0o600))
	require.NoError(t, setMode(closed, 0o640))
	info, err := closed.Stat()
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	require.NoError(t, closed.Close())
	syncFolder(filepath.Join(t.TempDir(), "gone"))
}
