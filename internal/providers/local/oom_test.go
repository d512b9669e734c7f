//go:build unix

package local_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
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
	require.Equal(t, sandbox.Certain, e.Confidence)
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
	require.Equal(t, sandbox.Certain, e.Confidence)
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
