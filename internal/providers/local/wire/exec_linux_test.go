package wire_test

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sbx/internal/providers/local/wire"
)

func pair(t *testing.T) (a, b *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	a, b = os.NewFile(uintptr(fds[0]), "a"), os.NewFile(uintptr(fds[1]), "b")
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestStreamsTravelBesideTheCommand(t *testing.T) {
	t.Parallel()
	client, stub := pair(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	ask := wire.Exec{Argv: []string{"echo", "hi"}, Env: []string{"A=1"}, Dir: "/tmp", TTY: true}
	require.NoError(t, wire.SendExec(client, ask, [3]*os.File{r, w, w}))
	got, files, err := wire.ReceiveExec(stub)
	require.NoError(t, err)
	assert.Equal(t, ask, got)
	require.Len(t, files, 3)
	require.NoError(t, w.Close())
	_, err = files[1].WriteString("through")
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, f.Close())
	}
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "through", string(text))
}

func TestWhatIsNoCommandIsRefused(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string][]byte{
		"no streams": {0, 0, 0, 2, '{', '}'}, "absurd size": {255, 255, 255, 255}, "cut short": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, stub := pair(t)
			_, err := client.Write(raw)
			require.NoError(t, err)
			require.NoError(t, client.Close())
			_, files, err := wire.ReceiveExec(stub)
			require.Error(t, err)
			assert.Empty(t, files)
		})
	}
	client, stub := pair(t)
	require.NoError(t, wire.SendExec(client, wire.Exec{}, [3]*os.File{os.Stdin, os.Stdin, os.Stdin}))
	_, files, err := wire.ReceiveExec(stub)
	require.ErrorContains(t, err, "empty")
	for _, f := range files {
		require.NoError(t, f.Close())
	}
}

func TestConnectToNothing(t *testing.T) {
	t.Parallel()
	_, err := wire.Connect(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAnAgreedDescriptorIsClosedOnExec(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	fd, err := unix.Dup(int(null.Fd()))
	require.NoError(t, err)
	f := wire.File(fd, "agreed")
	defer f.Close()
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	require.NoError(t, err)
	assert.NotZero(t, flags&unix.FD_CLOEXEC)
}
