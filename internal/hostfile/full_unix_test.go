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

// The kernel refuses to change the mode of a file below /proc, as some mounts do of all files.
func TestModeIsSetOnlyWhereItDiffers(t *testing.T) {
	t.Parallel()
	fixed, err := os.Open("/proc/self/status")
	if err != nil {
		t.Skip("no file here whose mode cannot be changed:", err)
	}
	t.Cleanup(func() { _ = fixed.Close() })
	require.NoError(t, setMode(fixed, 0o444), "it has this mode already")
	require.ErrorIs(t, setMode(fixed, 0o600), syscall.EPERM)

	file, err := os.OpenFile(filepath.Join(t.TempDir(), "file"), os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	require.NoError(t, setMode(file, 0o640))
	info, err := file.Stat()
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
}
