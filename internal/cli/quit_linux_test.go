package cli_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

// lockedBuffer is a buffer of two goroutines.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(part []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(part)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestAQuitLeavesTheTerminalAsItWas: SIGQUIT ends what has the terminal and prints its goroutines, and the terminal is
// restored before that.
func TestAQuitLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	t.Cleanup(func() { endAll(dir + "/state") })
	env := []string{"HOME=" + dir, "SBX_STATE_DIR=" + dir + "/state", "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LC_ALL=C.UTF-8"}
	master, slave, err := pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = master.Close(), slave.Close() })
	require.NoError(t, pty.Setsize(slave, &pty.Winsize{Rows: 24, Cols: 80}))
	settings := func() string {
		cmd := exec.CommandContext(t.Context(), "stty", "-a")
		cmd.Stdin = slave
		out, err := cmd.Output()
		require.NoError(t, err)
		return string(out)
	}
	before := settings()
	var drawn lockedBuffer
	go func() { _, _ = io.Copy(&drawn, master) }()
	cmd := exec.CommandContext(t.Context(), "sbx", "dashboard")
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.Contains(drawn.String(), "local") && settings() != before }, tiertest.Limit(t), 50*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGQUIT))
	_ = cmd.Wait()
	assert.Equal(t, before, settings())
	assert.Eventually(t, func() bool { return strings.Contains(drawn.String(), "SIGQUIT: quit") }, tiertest.Limit(t), 50*time.Millisecond)
	_, dump, _ := strings.Cut(drawn.String(), "\x1b[?1049l")
	assert.Contains(t, dump, "goroutine ", "they stand where the shell does")
}
