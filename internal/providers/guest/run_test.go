//go:build linux

package guest_test

import (
	"context"
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

	"sbx/internal/fault"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

func TestAProgramKeepsItsOutputAndCode(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		b.launch("sh", "-c", `echo out $GREETING; echo "it's err" >&2; printf '\377\000bin'; umask; exit 7`)
		exit := b.ended("")
		require.NotNil(b, exit.Code)
		assert.Equal(b, 7, *exit.Code)
		assert.Equal(b, sandbox.ClassAgentError, exit.Class)
		assert.Equal(b, guest.Source, exit.Evidence[0].Source)
		assert.WithinDuration(b, time.Now(), exit.Evidence[0].At, time.Hour)
		out, errs, dropped := b.all()
		mask, _ := b.run("umask")
		assert.Equal(b, "out hello\n\xff\x00bin"+string(mask), out, "the program's umask is the caller's")
		assert.Equal(b, "it's err\n", errs)
		assert.Zero(b, dropped)
		got := b.read(guest.Offsets{})
		assert.True(b, got.Ended)
		assert.False(b, got.Lost || got.More || got.Cut)
		assert.Empty(b, b.read(got.Next).Out)
		state, err := os.Stat(filepath.Join(b.home, ".sbx/runs/main"))
		require.NoError(b, err)
		assert.Equal(b, os.FileMode(0o700), state.Mode().Perm())
	})
}

func TestARunningProgramHasNoExit(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		pid := b.launch("sh", "-c", "echo begun; exec sleep 600")
		assert.Nil(b, b.exit(""))
		require.Eventually(b, func() bool { return string(b.read(guest.Offsets{}).Out) == "begun\n" }, tiertest.Limit(b), 20*time.Millisecond)
		assert.False(b, b.read(guest.Offsets{}).Ended)
		_, code := b.run(guest.LaunchScript(guest.Program{Args: []string{"true"}}))
		assert.Equal(b, guest.ExitTaken, code)
		require.NoError(b, syscall.Kill(pid, syscall.SIGKILL))
		exit := b.ended("")
		assert.Equal(b, 137, *exit.Code)
		assert.Equal(b, sandbox.ClassKilledUnknown, exit.Class)
		assert.Equal(b, sandbox.CauseUnknown, exit.Cause, "a bare 137 names no cause")
	})
}

func TestHowProgramsEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		program guest.Program
		code    int
		class   sandbox.Class
		err     string
	}{
		"missing":           {guest.Program{Args: []string{"no-such-program-7f3a"}}, 127, sandbox.ClassEnvironment, "no-such-program-7f3a"},
		"not executable":    {guest.Program{Args: []string{"/etc/passwd"}}, 126, sandbox.ClassEnvironment, "passwd"},
		"workdir gone":      {guest.Program{Args: []string{"true"}, Workdir: "/no/such/folder"}, 125, sandbox.ClassLauncher, "/no/such/folder"},
		"a child is killed": {guest.Program{Args: []string{"sh", "-c", "sh -c 'kill -9 $$'; exit 3"}}, 3, sandbox.ClassAgentError, ""},
		"its own 125":       {guest.Program{Args: []string{"sh", "-c", "exit 125"}}, 125, sandbox.ClassAgentError, ""},
		"its own 255":       {guest.Program{Args: []string{"sh", "-c", "exit 255"}}, 255, sandbox.ClassAgentError, ""},
		"passed on":         {guest.Program{Args: []string{"sh", "-c", "sh -c 'kill -9 $$'"}}, 137, sandbox.ClassKilledUnknown, ""},
		"terminates itself": {guest.Program{Args: []string{"sh", "-c", "kill -TERM $$"}}, 143, sandbox.ClassKilledUnknown, ""},
		"assigns":           {guest.Program{Args: []string{"A=b"}}, 127, sandbox.ClassEnvironment, "A=b"},
		"quotes":            {guest.Program{Args: []string{"sh", "-c", `[ "$1" = "it's \"\$x\"" ]`, "sh", `it's "$x"`}}, 0, sandbox.ClassOK, ""},
		"workdir":           {guest.Program{Args: []string{"sh", "-c", `[ "$PWD" = / ]`}, Workdir: "/"}, 0, sandbox.ClassOK, ""},
		"reads nothing":     {guest.Program{Args: []string{"sh", "-c", "read x || exit 4"}}, 4, sandbox.ClassAgentError, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(b box) {
				b.start(tc.program)
				exit := b.ended("")
				require.NotNil(b, exit.Code)
				assert.Equal(b, tc.code, *exit.Code)
				assert.Equal(b, tc.class, exit.Class)
				assert.Contains(b, string(b.read(guest.Offsets{}).Err), tc.err)
			})
		})
	}
}

func nameOf(pid int) string {
	name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	return strings.TrimSpace(string(name))
}

// TestProgramsCanBeInterrupted: a background program of a shell ignores SIGINT and SIGQUIT; a
// program of sbx must not.
func TestProgramsCanBeInterrupted(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		if b.shell[0] == "busybox" {
			b.Skip("its env restores no signal, and it has no perl")
		}
		for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGQUIT: 131} {
			tag := "by-" + strconv.Itoa(int(signal))
			pid := b.start(guest.Program{Tag: tag, Args: []string{"sleep", "600"}})
			require.Eventually(b, func() bool { return nameOf(pid) == "sleep" }, tiertest.Limit(b), 10*time.Millisecond)
			require.NoError(b, syscall.Kill(pid, signal))
			exit := b.ended(tag)
			require.NotNil(b, exit.Code)
			assert.Equal(b, want, *exit.Code, signal)
		}
		b.start(guest.Program{Tag: "missing", Args: []string{"no-such-program-7f3a"}})
		assert.Equal(b, 127, *b.ended("missing").Code)
	})
}

func TestTextsRefuseWhatTheyCannotMean(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		for want, texts := range map[int][]string{
			guest.ExitMissing: {guest.ReadExitScript("other"), guest.ReadOutputScript("other", guest.Offsets{}), guest.KillScript("other", 9)},
			guest.ExitMisuse: {
				guest.ReadExitScript("../../etc"), guest.ReadOutputScript(".", guest.Offsets{}), guest.KillScript("a b", 9),
				guest.LaunchScript(guest.Program{Tag: "a/b", Args: []string{"true"}}), guest.LaunchScript(guest.Program{}),
			},
		} {
			for _, text := range texts {
				_, code := b.run(text)
				assert.Equal(b, want, code, "%.80s", text)
			}
		}
		require.NoError(b, os.WriteFile(filepath.Join(b.home, ".sbx"), nil, 0o600))
		_, code := b.run(guest.LaunchScript(guest.Program{Args: []string{"true"}}))
		assert.Equal(b, guest.ExitFailed, code)
	})
}

func TestADaemonOutlivesItsProgram(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		b.launch("sh", "-c", `(trap "" TERM; exec sh -c 'echo $$ > daemon; while :; do sleep 1; done') & echo started; exit 0`)
		daemon := b.number("daemon")
		exit := b.ended("")
		assert.Equal(b, 0, *exit.Code, "an open stream does not hide the end")
		assert.True(b, running(daemon))
		out, _ := b.run(guest.KillScript("", 9))
		assert.NotEqual(b, "signalled 0", strings.TrimSpace(string(out)))
		b.gone(daemon, "the daemon survives a kill")
	})
}

func TestNobodySawTheEndOfARunWithoutItsRunner(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		pid := b.launch("sh", "-c", "echo before; exec sleep 600")
		require.Eventually(b, func() bool { return len(b.read(guest.Offsets{}).Out) > 0 }, tiertest.Limit(b), 20*time.Millisecond)
		require.NoError(b, syscall.Kill(b.number(".sbx/runs/main/runner"), syscall.SIGKILL))
		assert.Nil(b, b.exit(""), "the program runs on")
		require.NoError(b, syscall.Kill(pid, syscall.SIGKILL))
		exit := b.ended("")
		assert.Nil(b, exit.Code)
		assert.Equal(b, sandbox.ClassUnknown, exit.Class)
		assert.Contains(b, exit.Evidence[len(exit.Evidence)-1].Value, "the process that watched the program died")
		got := b.read(guest.Offsets{})
		assert.True(b, got.Lost && got.Ended)
		assert.Equal(b, "before\n", string(got.Out), "what it wrote stays")
	})
}

// TestTheDeadMayStayUnburied: the first process of the sandbox does not reap zombies.
func TestTheDeadMayStayUnburied(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		c := exec.Command(b.shell[0], append(b.shell[1:], "-c", guest.LaunchScript(guest.Program{Tag: "unburied", Args: []string{"sleep", "600"}})+"exec sleep 600")...)
		c.Env, c.Dir = []string{"HOME=" + b.home, "PATH=" + b.path}, b.home
		require.NoError(b, c.Start())
		program, runner := b.number(".sbx/runs/unburied/pid"), b.number(".sbx/runs/unburied/runner")
		require.Eventually(b, func() bool { return strings.Contains(stat(c.Process.Pid), "(sleep)") }, tiertest.Limit(b), 10*time.Millisecond)
		require.NoError(b, syscall.Kill(runner, syscall.SIGKILL))
		require.NoError(b, syscall.Kill(program, syscall.SIGKILL))
		assert.Equal(b, sandbox.ClassUnknown, b.ended("unburied").Class)
		assert.Contains(b, stat(runner), ") Z ", "this test buries its dead")
		_ = c.Process.Kill()
		_ = c.Wait()
	})
}

// TestAnotherProcessWithTheNumber: after a restart of the sandbox the process ids in the files
// belong to other processes.
func TestAnotherProcessWithTheNumber(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		b.launch("true")
		b.ended("")
		dir := filepath.Join(b.home, ".sbx/runs/main")
		require.NoError(b, os.Remove(filepath.Join(dir, "code")))
		other := b.start(guest.Program{Tag: "other", Args: []string{"sleep", "600"}})
		text, err := os.ReadFile(filepath.Join(b.home, ".sbx/runs/other/pid"))
		require.NoError(b, err)
		words := strings.Fields(string(text))
		for _, changed := range []string{words[0] + " 1 " + words[2], words[0] + " " + words[1] + " another-boot"} {
			for _, file := range []string{"pid", "runner"} {
				require.NoError(b, os.WriteFile(filepath.Join(dir, file), []byte(changed+"\n"), 0o600))
			}
			exit := b.exit("")
			require.NotNil(b, exit)
			assert.Equal(b, sandbox.ClassUnknown, exit.Class)
			out, _ := b.run(guest.KillScript("", 9))
			assert.Equal(b, "signalled 0\n", string(out))
		}
		assert.True(b, running(other))
	})
}

func TestListNamesTheRuns(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		out, _ := b.run(guest.ListScript)
		runs, err := guest.ParseList(out)
		require.NoError(b, err)
		assert.Empty(b, runs)
		b.start(guest.Program{Tag: "first", Args: []string{"true"}})
		b.ended("first")
		b.launch("sleep", "600")
		out, _ = b.run(guest.ListScript)
		runs, err = guest.ParseList(out)
		require.NoError(b, err)
		require.Len(b, runs, 2)
		for _, r := range runs {
			assert.WithinDuration(b, time.Now(), r.StartedAt, time.Hour)
			assert.Equal(b, r.Tag == "first", r.Ended)
			assert.False(b, r.Lost)
		}
	})
}

// TestStartLooksForTheProgram: a program that cannot be run is not started and leaves no files.
func TestStartLooksForTheProgram(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		program guest.Program
		kind    fault.Kind
	}{
		"missing":              {guest.Program{Args: []string{"no-such-program-7f3a"}}, fault.KindCommandNotFound},
		"a missing path":       {guest.Program{Args: []string{"/no/such/program"}}, fault.KindCommandNotFound},
		"not executable":       {guest.Program{Args: []string{"/etc/passwd"}}, fault.KindNotExecutable},
		"a folder":             {guest.Program{Args: []string{"/etc"}}, fault.KindNotExecutable},
		"no folder":            {guest.Program{Args: []string{"true"}, Workdir: "/no/such/folder"}, fault.KindLauncher},
		"hostile":              {guest.Program{Args: []string{"$(touch hostile)`touch hostile`"}}, fault.KindCommandNotFound},
		"a star":               {guest.Program{Args: []string{"*"}}, fault.KindCommandNotFound},
		"there":                {guest.Program{Args: []string{"sh", "-c", "exit 3"}}, fault.KindNone},
		"by path":              {guest.Program{Args: []string{"/bin/sh", "-c", "exit 3"}}, fault.KindNone},
		"by path from workdir": {guest.Program{Args: []string{"bin/sh", "-c", "exit 3"}, Workdir: "/"}, fault.KindNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(b box) {
				sh := func(_ context.Context, text string) ([]byte, int, error) {
					out, code := b.run(text)
					return out, code, nil
				}
				err := guest.Start(t.Context(), sh, tc.program)
				require.Equal(b, tc.kind, fault.KindOf(err), "%v", err)
				if tc.kind == fault.KindNone {
					assert.Equal(b, 3, *b.ended("").Code)
					return
				}
				assert.NoFileExists(b, filepath.Join(b.home, ".sbx"), "it leaves nothing")
				assert.NoFileExists(b, filepath.Join(b.home, "hostile"))
			})
		})
	}
}
