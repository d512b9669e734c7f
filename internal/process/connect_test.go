//go:build unix

package process_test

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/process"
)

// TestAConnectionEndsWithItsCaller: also where the program does not answer and has a child that holds its streams, as ssh
// has with a jump host. None of them is left.
func TestAConnectionEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "child")
	p := process.Process{Environ: os.Environ()}
	c, err := p.Connect("sh", "-c", "trap '' TERM; sleep 600 & echo $! > "+file+"; wait")
	require.NoError(t, err)
	var child int
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		require.True(t, err == nil || os.IsNotExist(err))
		child, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return child > 0
	}, time.Minute, 5*time.Millisecond)
	closed := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		closed <- err
	}()
	require.NoError(t, c.Close())
	select {
	case err := <-closed:
		require.Error(t, err)
	case <-time.After(30 * time.Second):
		require.Fail(t, "a read goes on")
	}
	assert.Eventually(t, func() bool { return syscall.Kill(child, 0) != nil || isZombie(child) }, time.Minute, 5*time.Millisecond, "its child is left")
}

func isZombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(text), ") Z ")
}

func TestAConnectionCarriesBothDirections(t *testing.T) {
	t.Parallel()
	p := process.Process{Environ: os.Environ()}
	c, err := p.Connect("cat")
	require.NoError(t, err)
	_, err = io.WriteString(c, "word")
	require.NoError(t, err)
	half, ok := c.(interface{ CloseWrite() error })
	require.True(t, ok)
	require.NoError(t, half.CloseWrite())
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Equal(t, "word", string(got))
	require.NoError(t, c.Close())
	c, err = p.Connect("sh", "-c", "echo 'no route to host' >&2; exit 255")
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.ErrorContains(t, err, "exit status 255: no route to host")
	require.NoError(t, c.Close())
}
