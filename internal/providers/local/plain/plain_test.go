//go:build unix

package plain

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// odd are the things that may stand where a file belongs.
func odd(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign")
	require.NoError(t, os.WriteFile(foreign, []byte("precious"), 0o600))
	paths := map[string]string{}
	for _, name := range []string{"fifo", "folder", "link", "dangling", "device"} {
		paths[name] = filepath.Join(dir, name)
	}
	require.NoError(t, syscall.Mkfifo(paths["fifo"], 0o600))
	require.NoError(t, os.Mkdir(paths["folder"], 0o700))
	require.NoError(t, os.Symlink(foreign, paths["link"]))
	require.NoError(t, os.Symlink(filepath.Join(dir, "absent"), paths["dangling"]))
	paths["device"] = os.DevNull
	return paths
}

func TestOpensNothingButRegularFiles(t *testing.T) {
	t.Parallel()
	for name, path := range odd(t) {
		for mode, flags := range map[string]int{
			"read": os.O_RDONLY, "append": os.O_WRONLY | os.O_APPEND | os.O_CREATE, "both": os.O_RDWR | os.O_CREATE,
		} {
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				_, err := Open(path, flags, 0o600)
				require.ErrorIs(t, err, ErrNotPlain)
				var at *fs.PathError
				require.ErrorAs(t, err, &at)
				assert.Equal(t, path, at.Path)
				_, err = Read(path, 100)
				require.ErrorIs(t, err, ErrNotPlain)
			})
		}
	}
}

func TestMakesNothingBehindADanglingLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link, absent := filepath.Join(dir, "link"), filepath.Join(dir, "absent")
	require.NoError(t, os.Symlink(absent, link))
	_, err := Open(link, os.O_RDWR|os.O_CREATE, 0o600)
	require.ErrorIs(t, err, ErrNotPlain)
	assert.NoFileExists(t, absent)
}

func TestOpensAndMakesFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	_, err := Open(path, os.O_RDONLY, 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	for range 2 {
		file, err := Open(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		require.NoError(t, err)
		_, err = file.WriteString("word ")
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
	raw, err := Read(path, 10)
	require.NoError(t, err)
	assert.Equal(t, "word word ", string(raw))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())
}

func TestReadsNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", 100)), 0o600))
	raw, err := Read(path, 100)
	require.NoError(t, err)
	assert.Len(t, raw, 100)
	_, err = Read(path, 99)
	require.ErrorIs(t, err, ErrTooLong)
	require.NoError(t, os.Truncate(path, 1<<30))
	_, err = Read(path, 99)
	require.ErrorIs(t, err, ErrTooLong)
	assert.ErrorContains(t, err, "1073741824 bytes")
}

func TestReadsAnEmptyFileAndSaysWhatIsNotThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	_, err := Read(path, 10)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	raw, err := Read(path, 10)
	require.NoError(t, err)
	assert.Empty(t, raw)
}

func TestFilesAreClosedOnExec(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	fd, err := Descriptor(path, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	defer os.NewFile(uintptr(fd), path).Close()
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
	require.Zero(t, errno)
	assert.NotZero(t, flags&syscall.FD_CLOEXEC)
}

func TestASignalIsNoReasonToGiveUp(t *testing.T) {
	t.Parallel()
	calls := 0
	err := RetryInterrupted(func() error {
		if calls++; calls < 3 {
			return syscall.EINTR
		}
		return errors.ErrUnsupported
	})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	assert.Equal(t, 3, calls)
}
