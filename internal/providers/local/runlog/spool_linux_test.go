package runlog

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The kernel's own full disk.
func TestDevFull(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this machine has no /dev/full:", err)
	}
	dir := t.TempDir()
	require.NoError(t, os.Symlink("/dev/full", currentPath(dir)))
	w := NewWriter(dir, largeCap)
	say(w.Stream(Stdout), "lost\nopen")
	require.ErrorIs(t, w.Close(), syscall.ENOSPC)
	assert.EqualValues(t, 8, w.Dropped())
}
