package identity

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// helperKey selects the part of the re-executed test binary.
const helperKey = "IDENTITY_TEST_PART"

// pollEvery is how often a test looks at a process that cannot be waited for.
const pollEvery = 2 * time.Millisecond

func TestMain(m *testing.M) {
	parts := map[string]func() string{
		"leader-exits": leaderExits,
		"reuse":        reusePID,
		"read":         blockInRead,
		"poll":         blockInPoll,
		"end-other":    endOther,
	}
	if part, ok := parts[os.Getenv(helperKey)]; ok {
		_, _ = os.Stdout.WriteString(part() + "\n")
		os.Exit(0)
	}
	if os.Getenv(insideKey) != "" {
		if err := ownProc(); err != nil {
			_, _ = os.Stdout.WriteString("--- SKIP: no procfs of its own: " + err.Error() + "\n")
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// leaderExits ends the main thread and lets the others live.
func leaderExits() string {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		return "skip: the first goroutine is not on the main thread"
	}
	go func() {
		_, _ = os.Stdout.WriteString("ready\n")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test closes it
		os.Exit(0)
	}()
	runtime.Gosched()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
	return "unreachable"
}

// child is a process that belongs to a test; it is killed and reaped with it.
type child struct {
	*exec.Cmd
	stdin *os.File // closing it ends the child
	out   *bufio.Reader
}

func spawn(t *testing.T, env []string, name string, args ...string) *child {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), env...)
	in, hold, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdin = in
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	in.Close()
	t.Cleanup(func() {
		hold.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &child{Cmd: cmd, stdin: hold, out: bufio.NewReader(out)}
}

// line reads one line of the child's output.
func (c *child) line(t *testing.T) string {
	t.Helper()
	text, err := c.out.ReadString('\n')
	require.NoError(t, err)
	return text[:len(text)-1]
}

// closeLater closes with the test; closing twice or late is no failure.
func closeLater(t *testing.T, c io.Closer) {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
}

// cat is a program that lives until its input is closed.
func cat(t *testing.T, env ...string) *child {
	t.Helper()
	return spawn(t, env, "cat")
}

func part(t *testing.T, name string, env ...string) *child {
	t.Helper()
	return spawn(t, append(env, helperKey+"="+name), "/proc/self/exe")
}

// tree writes a fake procfs: paths below it and their text; a text that begins
// with "->" makes a link.
func tree(t *testing.T, files map[string]string) Proc {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		full := filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		if len(text) > 2 && text[:2] == "->" {
			require.NoError(t, os.Symlink(text[2:], full))
			continue
		}
		require.NoError(t, os.WriteFile(full, []byte(text), 0o600))
	}
	return Proc{Root: root}
}
