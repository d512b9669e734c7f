//go:build unix

package hostfile

import (
	"os"
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
