package cgroup

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sbx/internal/testkit/tiertest"
)

func TestDiskTouchesOnlyWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "memory.max")
	require.ErrorIs(t, disk{}.writeFile(file, "1"), fs.ErrNotExist, "a file that the kernel did not make is not made")
	assert.NoFileExists(t, file)
	require.NoError(t, os.WriteFile(file, []byte("max\n"), 0o600))
	require.NoError(t, disk{}.writeFile(file, "12"))
	text, err := disk{}.readText(file)
	require.NoError(t, err)
	assert.Equal(t, "12x\n", text, "one write, without emptying the file first")
	require.ErrorIs(t, disk{}.removeGroupDir(file), syscall.ENOTDIR, "rmdir never unlinks a file")
	assert.FileExists(t, file)
	require.Error(t, disk{}.removeGroupDir(dir), "nor a directory with something in it")
}

func TestDiskChildrenAndInodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tasks"), nil, 0o600))
	require.NoError(t, disk{}.makeGroupDir(filepath.Join(dir, "b")))
	require.NoError(t, disk{}.makeGroupDir(filepath.Join(dir, "a")))
	names, err := disk{}.childDirs(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, names)
	_, err = disk{}.childDirs(filepath.Join(dir, "absent"))
	assert.True(t, noSuchGroup(err))
	one, err := disk{}.inodeOfDir(filepath.Join(dir, "a"))
	require.NoError(t, err)
	other, err := disk{}.inodeOfDir(filepath.Join(dir, "b"))
	require.NoError(t, err)
	assert.NotEqual(t, one, other)
	_, err = disk{}.inodeOfDir(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestRightsOfAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for parent := dir; parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
		require.NoError(t, os.Chmod(parent, 0o755))
	}
	given := filepath.Join(dir, "given")
	require.NoError(t, os.Mkdir(given, 0o755))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(given, 65534, 65534))
		assert.False(t, disk{}.isDelegated(given), "root can write everywhere, so that proves nothing")
	}
	asNobody(t, func() {
		assert.True(t, disk{}.isDelegated(given))
		assert.False(t, disk{}.isDelegated("/"))
		assert.False(t, disk{}.isDelegated(filepath.Join(given, "absent")))
		missing := disk{}.checkWritable(filepath.Join(given, "absent"))
		assert.ErrorIs(t, missing, fs.ErrNotExist) //nolint:testifylint // require may not end a foreign goroutine
		refused := disk{}.checkWritable("/")
		assert.ErrorIs(t, refused, fs.ErrPermission) //nolint:testifylint // require may not end a foreign goroutine
		allowed := disk{}.checkWritable(given)
		assert.NoError(t, allowed)
	})
}

func TestDelegationMarkOfSystemd(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"1": true, "0": false, "": false, "123456789": false} {
		dir := t.TempDir()
		if err := unix.Setxattr(dir, "trusted.delegate", []byte(value), 0); err != nil {
			t.Skipf("this file system or user cannot set the mark: %v", err)
		}
		assert.Equal(t, want, disk{}.isDelegated(dir), "%q", value)
	}
}

func TestAwaitEvent(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cgroup.events")
	never := func(string) bool { return false }
	require.ErrorIs(t, awaitEvent(t.Context(), file, never), fs.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte("populated 0\n"), 0o600))
	var seen string
	require.NoError(t, awaitEvent(t.Context(), file, func(text string) bool { seen = text; return true }))
	assert.Equal(t, "populated 0\n", seen)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, awaitEvent(over, file, never), context.Canceled)
	require.NoError(t, awaitEvent(over, file, func(string) bool { return true }), "what is so already needs no wait")
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	began := time.Now()
	require.ErrorIs(t, awaitEvent(soon, file, never), context.DeadlineExceeded)
	if tiertest.IsLong("that a wait ends with its context, before its next look after a second") {
		assert.Less(t, time.Since(began), 900*time.Millisecond)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	require.NoError(t, awaitEvent(t.Context(), empty, func(text string) bool { return text == "" }))
	require.Error(t, awaitEvent(t.Context(), t.TempDir(), never), "a directory has nothing to tell")
}

// The kernel announces the end of the last process: the wait is over long
// before the look that it takes every second.
func TestEmptyingIsAnnounced(t *testing.T) {
	t.Parallel()
	tiertest.SkipUnlessLong(t, "the kernel's word against a look that comes after a second")
	g := realGroup(t, realHost(t), Limits{})
	d, ok := g.unifiedDir()
	if !ok {
		t.Skip("needs v2")
	}
	p := start(t, g, "sleep", "3600")
	defer time.AfterFunc(30*time.Millisecond, func() { _ = p.Kill() }).Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
	defer cancel()
	require.NoError(t, g.awaitKey(ctx, d, "populated 0"))
	empty, err := g.Empty()
	require.NoError(t, err)
	assert.True(t, empty)
}

func TestProcessHandle(t *testing.T) {
	t.Parallel()
	p, err := spawn(newGroup(disk{}, State{}), []string{"sleep", "60"})
	require.NoError(t, err)
	h, err := openProcess(p.Pid)
	require.NoError(t, err)
	defer h.closeHandle()
	require.NoError(t, h.signalProcess(syscall.SIGTERM))
	_, err = p.Wait()
	require.NoError(t, err)
	require.ErrorIs(t, h.signalProcess(syscall.SIGTERM), syscall.ESRCH, "a reaped process is nobody, even if its PID is used again")
	_, err = openProcess(999999999)
	require.Error(t, err)
	handle{pid: p.Pid, fd: -1}.closeHandle()
}
