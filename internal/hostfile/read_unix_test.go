//go:build unix

package hostfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadReadsAPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(path, []byte("text"), 0o600) }()
	content, err := Read(t.Context(), path, 100)
	require.NoError(t, err)
	assert.Equal(t, "text", string(content))
	require.NoError(t, <-written)
}

// Neither the open of a pipe without a writer nor the read of one that gives
// nothing keeps the caller.
func TestReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	go cancel(why)
	_, err := Read(ctx, path, 100)
	require.ErrorIs(t, err, why)

	ctx, cancel = context.WithCancelCause(t.Context())
	opened := make(chan *os.File, 1)
	go func() {
		writer, _ := os.OpenFile(path, os.O_WRONLY, 0) // returns when a reader is there
		opened <- writer
		cancel(why)
	}()
	_, err = File{Flag: "--file", Path: path, Limit: 100}.Read(ctx)
	require.ErrorIs(t, err, why, "the cause as it is, without the flag: its exit code is that of the interrupt")
	assert.Equal(t, why, err)
	require.NoError(t, (<-opened).Close())
}

func TestReadBoundsADevice(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("there is no /dev/zero")
	}
	_, err := Read(t.Context(), "/dev/zero", 1<<20)
	var large *TooLargeError
	require.ErrorAs(t, err, &large)
	require.ErrorContains(t, err, "1 MiB")
}
