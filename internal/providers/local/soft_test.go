//go:build unix

package local_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// needSoft skips where the kernel holds limits: run as an unprivileged user
// without a delegated cgroup to see these tests work.
func needSoft(t *testing.T, s sandbox.Sandbox) {
	t.Helper()
	if s.Limits.Enforcement.Hard() {
		t.Skipf("this machine has a hard limit: %s", s.Limits.Enforcement)
	}
}

func TestWatchdogEndsAHogAndSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: hogCommand(), MemoryBytes: 64 * sandbox.MiB})
	needSoft(t, s)
	require.Equal(t, sandbox.EnforcementWatch, s.Limits.Enforcement)
	e := b.ended(t, s.ID)
	require.Equal(t, sandbox.CauseMemoryWatchdog, e.Exit.Cause)
	require.Equal(t, sandbox.ClassOOM, e.Exit.Class)
	require.Equal(t, sandbox.Certain, e.Exit.Confidence)
}

func TestRequiredHardLimitIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	needSoft(t, b.sh(t, "true"))
	before, err := b.store().IDs()
	require.NoError(t, err)
	_, err = b.Create(t.Context(), sandbox.Spec{Command: []string{"sleep", "600"}, RequireHardLimit: true})
	require.Equal(t, fault.KindRefused, fault.KindOf(err))
	require.NotEmpty(t, fault.HintOf(err))
	after, err := b.store().IDs()
	require.NoError(t, err)
	require.Equal(t, before, after, "a refused start leaves nothing")
}
