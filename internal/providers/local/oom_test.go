//go:build unix

package local_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

func hogCommand() []string { return []string{self(), programArg, "hog"} }

func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

func needHard(t *testing.T, s sandbox.Sandbox) {
	t.Helper()
	if !s.Limits.Enforcement.Hard() {
		t.Skipf("no hard limit on this machine: %s", s.Limits.Enforcement)
	}
}

// withKernelLog is Certain where the kernel's log can be read; without it, which process was
// killed and when is not known.
func withKernelLog() sandbox.Confidence {
	if tiertest.ReadsKernelLog() {
		return sandbox.Certain
	}
	return sandbox.Probable
}

func evidenceOf(e *sandbox.Exit, what string) string {
	for _, item := range e.Evidence {
		if item.What == what {
			return item.Value
		}
	}
	return ""
}

func TestHogIsOOMWithTheKernelsCounter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: hogCommand(), MemoryBytes: 64 * sandbox.MiB})
	needHard(t, s)
	e := b.ended(t, s.ID).Exit
	require.Equal(t, sandbox.CauseOOM, e.Cause)
	require.Equal(t, withKernelLog(), e.Confidence, "%+v", e.Evidence)
	require.Equal(t, sandbox.ClassOOM, e.Class)
	require.Equal(t, 137, *e.Code)
	require.Equal(t, "SIGKILL", e.Signal)
	require.NotEmpty(t, evidenceOf(e, "oom_kill"), "%+v", e.Evidence)
}

func TestChildOOMKeepsTheProgramsOwnExit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{
		Command: []string{"sh", "-c", `"$1" "$2" hog; exit 3`, "sh", self(), programArg}, MemoryBytes: 64 * sandbox.MiB,
	})
	needHard(t, s)
	e := b.ended(t, s.ID).Exit
	require.Equal(t, 3, *e.Code)
	require.Equal(t, sandbox.CauseOOMChild, e.Cause)
	require.Equal(t, withKernelLog(), e.Confidence, "%+v", e.Evidence)
	require.Equal(t, sandbox.ClassAgentError, e.Class)
}

func TestOutsideKillIsNoOOM(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: []string{"sleep", "600"}, MemoryBytes: 64 * sandbox.MiB})
	require.NoError(t, syscall.Kill(b.record(t, s.ID).Program.PID, syscall.SIGKILL))
	e := b.ended(t, s.ID).Exit
	require.Equal(t, sandbox.ClassKilledUnknown, e.Class)
	require.Equal(t, sandbox.CauseUnknown, e.Cause)
	require.Equal(t, 137, *e.Code)
}

// TestAKillLongAfterAChildsOOMIsNoOOM: the kernel's counter is of the whole life. A child that was
// killed for memory long before does not explain a kill from outside. Where the kernel's log cannot be read,
// the supervisor has seen when the counter grew.
func TestAKillLongAfterAChildsOOMIsNoOOM(t *testing.T) {
	t.Parallel()
	pause := "0"
	if !tiertest.ReadsKernelLog() {
		tiertest.SkipShort(t, "the counter has to stand still for some seconds")
		pause = "6"
	}
	b := newBench(t)
	s := b.create(t, sandbox.Spec{
		Command: []string{"sh", "-c", `"$1" "$2" hog; sleep ` + pause + `; echo done > done; exec sleep 600`, "sh", self(), programArg}, MemoryBytes: 64 * sandbox.MiB,
	})
	needHard(t, s)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(b.record(t, s.ID).Workdir, "done"))
		return err == nil
	}, tiertest.Limit(t), 10*time.Millisecond)
	require.NoError(t, syscall.Kill(b.record(t, s.ID).Program.PID, syscall.SIGKILL))
	e := b.ended(t, s.ID).Exit
	require.Equal(t, sandbox.ClassKilledUnknown, e.Class, "%+v", e.Evidence)
	require.NotEqual(t, sandbox.CauseOOM, e.Cause)
	require.Equal(t, "1", evidenceOf(e, "oom_kill"))
}
