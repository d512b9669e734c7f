package runlog

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/local/plain"
)

// The kernel's own full disk.
func TestDevFull(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this machine has no /dev/full:", err)
	}
	defer full.Close()
	w := NewWriter(t.TempDir(), largeCap)
	w.spool.write = func(_ *os.File, b []byte) (int, error) { return full.Write(b) }
	say(w.Stream(Stdout), "lost\nopen")
	require.ErrorIs(t, w.Close(), syscall.ENOSPC)
	assert.EqualValues(t, 8, w.Dropped())
}

// The folder is within the program's reach, which may leave anything where its
// log belongs.
func TestOnlyAFileIsTakenForTheLog(t *testing.T) {
	t.Parallel()
	foreign := filepath.Join(t.TempDir(), "foreign")
	require.NoError(t, os.WriteFile(foreign, []byte("precious\n"), 0o600))
	for name, plant := range map[string]func(path string) error{
		"link":   func(path string) error { return os.Symlink(foreign, path) },
		"fifo":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, plant(currentPath(dir)))
			_, active := LastActivity(dir)
			assert.False(t, active)
			w := NewWriter(dir, largeCap)
			say(w.Stream(Stdout), "lost\n")
			require.ErrorIs(t, w.Close(), plain.ErrNotPlain)
			assert.EqualValues(t, 4, w.Dropped())
			_, err := openPair(dir)
			require.ErrorIs(t, err, plain.ErrNotPlain)
			raw, err := os.ReadFile(foreign)
			require.NoError(t, err)
			assert.Equal(t, "precious\n", string(raw))
		})
	}
}
