package cgroup

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheKernelLogNamesWhomItKilled(t *testing.T) {
	t.Parallel()
	const after = 5 * time.Second
	for name, tc := range map[string]struct {
		record string
		want   bool
	}{
		"of the machine": {"3,1171,5316183,-;Out of memory: Killed process 4711 (python3) total-vm:265120kB, anon-rss:65280kB\n", true},
		"of a group":     {"3,1171,5316183,-;Memory cgroup out of memory: Killed process 4711 (dd) total-vm:265120kB\n SUBSYSTEM=x\n", true},
		"older kernels":  {"3,1171,5316183,-;Out of memory: Kill process 4711 (python3) score 900 or sacrifice child\n", true},
		"another":        {"3,1171,5316183,-;Out of memory: Killed process 47110 (python3) total-vm:1kB\n", false},
		"before it ran":  {"3,1171,4999999,-;Out of memory: Killed process 4711 (python3) total-vm:1kB\n", false},
		"other message":  {"6,1171,5316183,-;oom_reaper: reaped process 4711 (python3), now anon-rss:0kB\n", false},
		"a program's":    {"12,1171,5316183,-;Out of memory: Killed process 4711 (python3) total-vm:1kB\n", false},
		"no stamp":       {"3,1171,x,-;Out of memory: Killed process 4711 (python3)\n", false},
		"no record":      {"Out of memory: Killed process 4711 (python3)", false},
	} {
		_, got := parseOOMKill(tc.record, 4711, after)
		require.Equal(t, tc.want, got, name)
	}
}

// TestTheKernelLogIsRead: of a program that the kernel kills for lack of memory and one that a
// signal kills, only the first is in the log.
func TestTheKernelLogIsRead(t *testing.T) {
	t.Parallel()
	if f, err := os.Open(kernelLog); err != nil {
		t.Skipf("the kernel log may not be read here: %v", err)
	} else {
		_ = f.Close()
	}
	g := realGroup(t, realHost(t), Limits{MemoryBytes: 32 << 20})
	hog := start(t, g, "dd", "if=/dev/zero", "of=/dev/null", "bs=256M", "count=1")
	state, err := hog.Wait()
	require.NoError(t, err)
	require.False(t, state.Success())
	line, found := KilledForMemory(hog.Pid, time.Minute)
	require.True(t, found)
	require.Contains(t, line, "(dd)")

	killed := start(t, g, "sleep", "600")
	require.NoError(t, killed.Kill())
	_, err = killed.Wait()
	require.NoError(t, err)
	_, found = KilledForMemory(killed.Pid, time.Minute)
	require.False(t, found)
}
