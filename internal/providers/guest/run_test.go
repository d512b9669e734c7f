package guest_test

import (
	"bytes"
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
)

// box is a sandbox: a shell with a home of its own.
type box struct {
	shell []string
	home  string
}

// each runs a test under every POSIX shell of this machine.
func each(t *testing.T, test func(t *testing.T, b box)) {
	for name, shell := range map[string][]string{"sh": {"sh"}, "dash": {"dash"}, "bash": {"bash", "--posix"}, "busybox": {"busybox", "sh"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell[0]); err != nil {
				t.Skipf("no %s here", shell[0])
			}
			b := box{shell, t.TempDir()}
			t.Cleanup(func() { _, _ = b.run(t, guest.Kill("", 9)) })
			test(t, b)
		})
	}
}

// run executes a text as the exec of an API does: the call ends when the shell
// does and its streams are closed.
func (b box) run(t *testing.T, text string) ([]byte, int) {
	t.Helper()
	c := exec.Command(b.shell[0], append(b.shell[1:], "-c", text)...)
	c.Env = []string{"HOME=" + b.home, "PATH=" + os.Getenv("PATH"), "GREETING=hello"}
	c.Dir = b.home
	var out, err bytes.Buffer
	c.Stdout, c.Stderr = &out, &err
	_ = c.Run()
	if err.Len() > 0 {
		t.Logf("stderr: %s", err.String())
	}
	return out.Bytes(), c.ProcessState.ExitCode()
}

func (b box) launch(t *testing.T, args ...string) int {
	t.Helper()
	out, code := b.run(t, guest.Launch(guest.Program{Args: args, MaxOutput: 1 << 20}))
	require.Zero(t, code)
	word, pid, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	require.Equal(t, "started", word)
	n, _ := strconv.Atoi(pid)
	return n
}

// ended waits for the end of the run.
func (b box) ended(t *testing.T) sandbox.Exit {
	t.Helper()
	var exit *sandbox.Exit
	require.Eventually(t, func() bool {
		out, code := b.run(t, guest.ReadExit(""))
		require.Zero(t, code)
		got, err := guest.ParseExit(out)
		require.NoError(t, err)
		exit = got
		return exit != nil
	}, 20*time.Second, 20*time.Millisecond)
	return *exit
}

func (b box) output(t *testing.T, at guest.Offsets) guest.Output {
	t.Helper()
	out, code := b.run(t, guest.ReadOutput("", at))
	require.Zero(t, code)
	got, err := guest.ParseOutput(out, at)
	require.NoError(t, err, "%s", out)
	return got
}

func TestAProgramKeepsItsOutputAndCode(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b box) {
		b.launch(t, "sh", "-c", `echo out $GREETING; echo "it's err" >&2; printf '\377\000bin'; exit 7`)
		exit := b.ended(t)
		require.NotNil(t, exit.Code)
		assert.Equal(t, 7, *exit.Code)
		assert.Equal(t, sandbox.ClassAgentError, exit.Class)
		got := b.output(t, guest.Offsets{})
		assert.Equal(t, "out hello\n\xff\x00bin", string(got.Out))
		assert.Equal(t, "it's err\n", string(got.Err))
		assert.True(t, got.Ended)
		assert.False(t, got.Lost)
		assert.False(t, got.More)
		assert.Empty(t, b.output(t, got.Next).Out)
	})
}

func TestARunningProgramHasNoExit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b box) {
		b.launch(t, "sh", "-c", "echo begun; sleep 600")
		out, _ := b.run(t, guest.ReadExit(""))
		exit, err := guest.ParseExit(out)
		require.NoError(t, err)
		assert.Nil(t, exit)
		require.Eventually(t, func() bool { return string(b.output(t, guest.Offsets{}).Out) == "begun\n" }, 10*time.Second, 20*time.Millisecond)
		assert.False(t, b.output(t, guest.Offsets{}).Ended)
		_, code := b.run(t, guest.Launch(guest.Program{Args: []string{"true"}}))
		assert.Equal(t, guest.ExitTaken, code)
		_, code = b.run(t, guest.Kill("", 9))
		assert.Zero(t, code)
		exited := b.ended(t)
		assert.Equal(t, 137, *exited.Code)
		assert.Equal(t, sandbox.ClassKilledUnknown, exited.Class, "a bare 137 names no cause")
		assert.NotEqual(t, sandbox.CauseOOM, exited.Cause)
	})
}

func TestKillTakesTheWholeTree(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b box) {
		mark := filepath.Join(b.home, "alive")
		b.launch(t, "sh", "-c", `trap "" TERM; (setsid sh -c 'echo $$ > alive; exec sleep 600' &) ; sleep 600 & wait`)
		require.Eventually(t, func() bool { text, err := os.ReadFile(mark); return err == nil && len(text) > 1 }, 10*time.Second, 20*time.Millisecond)
		text, err := os.ReadFile(mark)
		require.NoError(t, err)
		stray, err := strconv.Atoi(strings.TrimSpace(string(text)))
		require.NoError(t, err)
		b.run(t, guest.Kill("", 9))
		b.ended(t)
		require.Eventually(t, func() bool { return syscall.Kill(stray, 0) != nil }, 10*time.Second, 20*time.Millisecond, "the daemon survives")
	})
}

func TestTheNewestOutputStays(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b box) {
		b.launch(t, "sh", "-c", `i=0; while [ $i -lt 40 ]; do head -c 100000 /dev/zero | tr '\000' x; i=$((i+1)); done; echo; echo last`)
		require.Equal(t, 0, *b.ended(t).Code, "a program is not stopped by the cap")
		var at guest.Offsets
		var all bytes.Buffer
		dropped := int64(0)
		for {
			o := b.output(t, at)
			all.Write(o.Out)
			dropped += o.DroppedOut
			at = o.Next
			assert.LessOrEqual(t, len(o.Out), guest.MaxRead)
			if !o.More {
				break
			}
		}
		if strings.Contains(b.shell[0], "busybox") && dropped == 0 {
			return // it may keep the oldest
		}
		assert.True(t, strings.HasSuffix(all.String(), "x\nlast\n"), "the end is kept")
		assert.Equal(t, int64(4_000_006), dropped+int64(all.Len()), "what is dropped is counted")
		assert.LessOrEqual(t, all.Len(), 1<<20)
	})
}

func TestWhatCannotRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b box) {
		b.launch(t, "no-such-program-7f3a")
		assert.Equal(t, 127, *b.ended(t).Code)
		_, code := b.run(t, guest.ReadExit("other"))
		assert.Equal(t, guest.ExitMissing, code)
		_, code = b.run(t, guest.ReadOutput("other", guest.Offsets{}))
		assert.Equal(t, guest.ExitMissing, code)
		_, code = b.run(t, guest.Launch(guest.Program{Tag: "nowhere", Args: []string{"true"}, Workdir: "/no/such/folder"}))
		assert.Zero(t, code)
		require.Eventually(t, func() bool {
			out, _ := b.run(t, guest.ReadExit("nowhere"))
			exit, err := guest.ParseExit(out)
			return err == nil && exit != nil && *exit.Code == 125
		}, 10*time.Second, 20*time.Millisecond)
	})
}

func TestNobodySawTheEndOfARunWithoutItsRunner(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b box) {
		pid := b.launch(t, "sleep", "600")
		text, err := os.ReadFile(filepath.Join(b.home, ".sbx/runs/main/runner"))
		require.NoError(t, err)
		runner, err := strconv.Atoi(strings.TrimSpace(string(text)))
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(runner, syscall.SIGKILL))
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		exit := b.ended(t)
		assert.Nil(t, exit.Code)
		assert.Equal(t, sandbox.ClassUnknown, exit.Class)
		assert.NotEmpty(t, exit.Evidence)
		assert.True(t, b.output(t, guest.Offsets{}).Lost)
	})
}

func TestMeasureGivesFigures(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b box) {
		out, code := b.run(t, guest.Measure())
		require.Zero(t, code)
		u, err := guest.ParseUsage(out, time.Now())
		require.NoError(t, err, "%s", out)
		require.NotNil(t, u.MemoryBytes, "%s", out)
		assert.Positive(t, *u.MemoryBytes)
		assert.Contains(t, u.Source, "probe command")
	})
}

func TestWrapKeepsTheCode(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b box) {
		require.NoError(t, os.WriteFile(filepath.Join(b.home, "in put"), []byte("text"), 0o600))
		out, code := b.run(t, guest.Wrap([]string{"cat"}, b.home, "in put"))
		assert.Equal(t, "text", string(out))
		assert.Zero(t, code)
		_, code = b.run(t, guest.Wrap([]string{"sh", "-c", "exit 5"}, "", "")+"; exit $?")
		assert.Equal(t, 5, code)
		_, code = b.run(t, guest.Wrap([]string{"true"}, "/no/such/folder", ""))
		assert.Equal(t, 125, code)
	})
}
