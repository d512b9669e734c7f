//go:build linux

package guest_test

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

// patient is the limit for real processes on a busy machine.
const patient = 3 * time.Minute

// box is a sandbox: a shell with a home of its own.
type box struct {
	*testing.T

	shell []string
	home  string
	path  string
	bare  bool // finds no setsid
}

// grouped says that this box can put a program into a group of its own.
func (b box) grouped() bool { return !b.bare || b.shell[0] == "bash" }

// each runs a test under every POSIX shell of this machine, each also as `sh`, and under two
// without setsid: bash can make groups without it, dash cannot. A test run takes each shell
// once, and one of them without setsid; the others are for the long run.
func each(t *testing.T, test func(b box)) {
	t.Helper()
	for name, shell := range map[string][]string{"dash": {"dash"}, "bash": {"bash", "--posix"}, "busybox": {"busybox", "sh"}, "dash without setsid": {"dash"}, "bash without setsid": {"bash"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "bash" || name == "dash without setsid" {
				tiertest.SkipUnlessLong(t, "bash, and dash without setsid: the other shells and bash without setsid cover both")
			}
			if _, err := exec.LookPath(shell[0]); err != nil {
				t.Skipf("no %s here", shell[0])
			}
			b := box{T: t, shell: shell, home: t.TempDir(), bare: strings.HasSuffix(name, "without setsid")}
			switch {
			case name == "busybox":
				b.path = applets(t)
			case b.bare:
				b.path = tools(t, shell[0])
			default:
				b.path = t.TempDir() + string(os.PathListSeparator) + os.Getenv("PATH")
				link(t, shell[0], filepath.Join(filepath.SplitList(b.path)[0], "sh"))
			}
			t.Cleanup(b.clear)
			test(b)
		})
	}
}

// tools is a folder with the commands of the scripts, without setsid and base64.
func tools(t *testing.T, shell string) string {
	t.Helper()
	dir := t.TempDir()
	link(t, shell, filepath.Join(dir, "sh"))
	for _, name := range []string{"cat", "mkdir", "mkfifo", "mv", "rm", "dd", "wc", "head", "tail", "od", "sed", "grep", "tr", "date", "find", "sleep", "env", "seq"} {
		link(t, name, filepath.Join(dir, name))
	}
	return dir
}

// oldGrep gives a box from tools a grep that does not know -z.
func (b box) oldGrep() {
	b.Helper()
	plain := filepath.Join(b.path, "grep")
	grep, err := os.Readlink(plain)
	require.NoError(b, err)
	require.NoError(b, os.Remove(plain))
	require.NoError(b, os.WriteFile(plain, []byte("#!/bin/sh\ncase $1 in -*z*) exit 2;; esac\nexec "+grep+` "$@"`+"\n"), 0o700))
}

func link(t *testing.T, program, as string) {
	t.Helper()
	path, err := exec.LookPath(program)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(path, as))
}

// applets is a folder with busybox's commands only.
func applets(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	path, err := exec.LookPath("busybox")
	require.NoError(t, err)
	names, err := exec.Command(path, "--list").Output()
	require.NoError(t, err)
	for _, name := range append(strings.Fields(string(names)), "busybox") {
		_ = os.Symlink(path, filepath.Join(dir, name))
	}
	return dir
}

// clear ends the processes of a test, the runners too: only those of this box, by their home or
// folder.
func (b box) clear() {
	require.Eventually(b.T, func() bool {
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		left := 0
		for _, dir := range dirs {
			text, _ := os.ReadFile(dir + "/environ")
			place, _ := os.Readlink(dir + "/cwd")
			if !bytes.Contains(append([]byte{0}, text...), []byte("\x00HOME="+b.home+"\x00")) && !strings.HasPrefix(place, b.home) {
				continue
			}
			left++
			pid, _ := strconv.Atoi(filepath.Base(dir))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return left == 0
	}, tiertest.Limit(b.T), 10*time.Millisecond)
}

// run executes a script as the exec of an API does: the call ends when the shell has ended and its
// streams are closed.
func (b box) run(text string) ([]byte, int) {
	b.Helper()
	c := exec.Command(b.shell[0], append(b.shell[1:], "-c", text)...)
	c.Env = []string{"HOME=" + b.home, "PATH=" + b.path, "GREETING=hello"}
	c.Dir = b.home
	var out, err bytes.Buffer
	c.Stdout, c.Stderr = &out, &err
	_ = c.Run()
	if err.Len() > 0 {
		b.Logf("stderr: %s", err.String())
	}
	return out.Bytes(), c.ProcessState.ExitCode()
}

// launch starts the main program and returns its process.
func (b box) launch(args ...string) int {
	b.Helper()
	return b.start(guest.Program{Args: args, MaxOutput: 1 << 20})
}

func (b box) start(p guest.Program) int {
	b.Helper()
	out, code := b.run(guest.LaunchScript(p))
	require.Zero(b, code)
	word, pid, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	require.Equal(b, "started", word)
	n, err := strconv.Atoi(pid)
	require.NoError(b, err)
	return n
}

// exit is nil while the program runs.
func (b box) exit(tag string) *sandbox.Exit {
	b.Helper()
	out, code := b.run(guest.ReadExitScript(tag))
	require.Zero(b, code)
	got, err := guest.ParseExit(out)
	require.NoError(b, err, "%s", out)
	return got
}

// ended waits for the end of the run. It reads rarely: each read starts twenty processes.
func (b box) ended(tag string) sandbox.Exit {
	b.Helper()
	dir := filepath.Join(b.home, ".sbx/runs", cmp.Or(tag, guest.MainTag))
	var exit *sandbox.Exit
	require.Eventually(b, func() bool {
		_, err := os.Stat(filepath.Join(dir, "code"))
		if err != nil && (running(leader(dir, "runner")) || running(leader(dir, "pid"))) {
			return false
		}
		exit = b.exit(tag)
		return exit != nil
	}, tiertest.Limit(b), 10*time.Millisecond)
	return *exit
}

func leader(dir, name string) int {
	text, _ := os.ReadFile(filepath.Join(dir, name))
	word, _, _ := strings.Cut(string(text), " ")
	n, _ := strconv.Atoi(word)
	return n
}

func (b box) read(at guest.Offsets) guest.Output {
	b.Helper()
	out, code := b.run(guest.ReadOutputScript("", at))
	require.Zero(b, code)
	got, err := guest.ParseOutput(out, at)
	require.NoError(b, err, "%s", out)
	return got
}

// all reads until there is nothing more.
func (b box) all() (out, errs string, dropped int64) {
	b.Helper()
	var o, e strings.Builder
	for at := (guest.Offsets{}); ; {
		got := b.read(at)
		assert.LessOrEqual(b, len(got.Out), guest.MaxRead)
		o.Write(got.Out)
		e.Write(got.Err)
		dropped += got.DroppedOut
		at = got.Next
		if !got.More {
			return o.String(), e.String(), dropped
		}
	}
}

// number waits for a file with a number, such as a process id.
func (b box) number(file string) int {
	b.Helper()
	n := 0
	require.Eventually(b, func() bool {
		text, err := os.ReadFile(filepath.Join(b.home, file))
		word, _, found := strings.Cut(string(text), "\n")
		word, _, _ = strings.Cut(word, " ")
		n, _ = strconv.Atoi(word)
		return err == nil && found && n > 0
	}, tiertest.Limit(b), 10*time.Millisecond)
	return n
}

func (b box) gone(pid int, what string) {
	b.Helper()
	require.Eventually(b, func() bool { return !running(pid) }, tiertest.Limit(b), 10*time.Millisecond, what)
}

// running is false for a zombie.
func running(pid int) bool {
	text := stat(pid)
	return text != "" && !strings.Contains(text, ") Z ") && !strings.Contains(text, ") X ")
}

func stat(pid int) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return string(text)
}
