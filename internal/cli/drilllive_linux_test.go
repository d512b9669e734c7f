package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
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

// liveDrill is `sbx drill --live` in a terminal of 80 x 24.
type liveDrill struct {
	state    string
	env      []string
	cmd      *exec.Cmd
	terminal *os.File
	over     chan struct{} // closed when the terminal is

	mu    sync.Mutex
	drawn bytes.Buffer
}

func startLiveDrill(t *testing.T) *liveDrill {
	t.Helper()
	dir := t.TempDir()
	l := &liveDrill{state: filepath.Join(dir, "state"), over: make(chan struct{})}
	t.Cleanup(func() { endAll(l.state) })
	l.env = []string{"HOME=" + dir, "SBX_STATE_DIR=" + l.state, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LC_ALL=C.UTF-8"}
	l.cmd = exec.CommandContext(t.Context(), "sbx", "drill", "--live", "--scenario", "silent")
	l.cmd.Env = l.env
	terminal, err := pty.StartWithSize(l.cmd, &pty.Winsize{Rows: 24, Cols: 80})
	require.NoError(t, err)
	l.terminal = terminal
	go func() {
		defer close(l.over)
		part := make([]byte, 4096)
		for {
			n, err := terminal.Read(part)
			l.mu.Lock()
			l.drawn.Write(part[:n])
			l.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return l
}

func (l *liveDrill) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drawn.String()
}

// waitFor waits until the terminal has got a text.
func (l *liveDrill) waitFor(t *testing.T, text string) {
	t.Helper()
	if !assert.Eventually(t, func() bool { return strings.Contains(l.text(), text) }, tiertest.Limit(t), 20*time.Millisecond, "%q was not drawn", text) {
		t.Fatalf("%q", l.text())
	}
}

// end waits for the end, and gives the exit code; -1 after a signal.
func (l *liveDrill) end(t *testing.T) int {
	t.Helper()
	_ = l.cmd.Wait()
	_ = l.terminal.Close()
	<-l.over
	return l.cmd.ProcessState.ExitCode()
}

// next is the next command that reads the provider.
func (l *liveDrill) next(t *testing.T) (out, errs string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sbx", "ls", "--all", "-o", "name")
	cmd.Env = l.env
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	require.NoError(t, cmd.Run(), e.String())
	return o.String(), e.String()
}

// waiting is what a live drill says before its screen, when all of its sandboxes run.
const waiting = "waiting until the sandboxes are old enough"

// TestALiveDrillLeavesNothing, also where its terminal is closed or it is killed before its screen is there.
func TestALiveDrillLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		leave  func(l *liveDrill)
		killed bool
	}{
		"the terminal is closed": {leave: func(l *liveDrill) { _ = l.terminal.Close() }},
		"hang-up":                {leave: func(l *liveDrill) { _ = l.cmd.Process.Signal(syscall.SIGHUP) }},
		"killed":                 {leave: func(l *liveDrill) { _ = l.cmd.Process.Kill() }, killed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startLiveDrill(t)
			l.waitFor(t, waiting)
			require.NotEmpty(t, processesOf(l.state))
			tc.leave(l)
			l.end(t)
			if !tc.killed {
				assert.Empty(t, processesOf(l.state))
			}
			out, errs := l.next(t)
			assert.Empty(t, out)
			assert.Equal(t, tc.killed, strings.Contains(errs, "the command that made 1 sandbox was killed; ended and removed: local/"), errs)
			assert.Empty(t, processesOf(l.state))
		})
	}
}

// TestALiveDrillIsLeftFromItsScreen by its key, by Ctrl-C and by signals: the limits are those of the drill, and all is
// removed and said so.
func TestALiveDrillIsLeftFromItsScreen(t *testing.T) {
	t.Parallel()
	tiertest.SkipShort(t, "8 s: waits until a real sandbox is stuck; TestALiveDrillLeavesNothing leaves before that")
	for name, tc := range map[string]struct {
		leave func(l *liveDrill)
		code  int
	}{
		"q":       {leave: func(l *liveDrill) { _, _ = l.terminal.WriteString("q") }},
		"ctrl+c":  {leave: func(l *liveDrill) { _, _ = l.terminal.WriteString("\x03") }},
		"TERM":    {leave: func(l *liveDrill) { _ = l.cmd.Process.Signal(syscall.SIGTERM) }, code: 143},
		"hang-up": {leave: func(l *liveDrill) { _ = l.cmd.Process.Signal(syscall.SIGHUP) }, code: 130},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startLiveDrill(t)
			l.waitFor(t, "stuck 1 over 5s")
			tc.leave(l)
			l.waitFor(t, "1 sandbox was staged, 0 had ended; all are")
			assert.Equal(t, tc.code, l.end(t), l.text())
			assert.Empty(t, processesOf(l.state))
			out, errs := l.next(t)
			assert.Empty(t, out)
			assert.NotContains(t, errs, "removed")
		})
	}
}
