package cgroup

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
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
		search := killSearch{pid: 4711, since: after, now: time.Minute}
		search.add(tc.record)
		require.Equal(t, tc.want, search.found.Line != "", name)
	}
}

// TestTheKernelLogSaysWhoseLimitItWas: the summary before a kill names the group of the process
// and the group whose limit was reached. What follows the kill of the process is not of its end.
func TestTheKernelLogSaysWhoseLimitItWas(t *testing.T) {
	t.Parallel()
	const (
		own     = "6,1,50000000,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/sbx/me.s1a,task_memcg=/sbx/me.s1a,task=dd,pid=4711,uid=0\n"
		above   = "6,1,50000000,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/sbx,task_memcg=/sbx/me.s1a,task=dd,oom_memcg=/sbx/me.s1a,pid=4711,uid=0\n"
		machine = "6,1,50000000,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/sbx/me.s1a,task=dd,pid=4711,uid=0\n"
		foreign = "6,1,50000000,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/sbx/me.s1b,task_memcg=/sbx/me.s1b,task=dd,pid=1,uid=0\n"
		it      = "3,2,50000000,-;Memory cgroup out of memory: Killed process 4711 (dd) total-vm:1kB\n"
		other   = "3,2,50000000,-;Memory cgroup out of memory: Killed process 4712 (dd) total-vm:1kB\n"
	)
	for name, tc := range map[string]struct {
		records []string
		named   bool
		last    time.Duration
		own     sandbox.Verdict
	}{
		"its own limit":      {[]string{own, it}, true, 10 * time.Second, sandbox.True},
		"of a group above":   {[]string{above, it}, true, 10 * time.Second, sandbox.False},
		"of the machine":     {[]string{machine, it}, true, 10 * time.Second, sandbox.False},
		"a child":            {[]string{own, other}, false, 10 * time.Second, sandbox.True},
		"another sandbox":    {[]string{foreign, other}, false, 0, ""},
		"without a summary":  {[]string{it}, true, 10 * time.Second, ""},
		"the next, after it": {[]string{own, it, machine, other}, true, 10 * time.Second, sandbox.True},
	} {
		search := killSearch{pid: 4711, id: "s1a", now: time.Minute}
		for _, record := range tc.records {
			search.add(record)
		}
		require.Equal(t, tc.named, search.found.Line != "", name)
		require.Equal(t, tc.last, search.found.Last, name)
		require.Equal(t, tc.own, search.found.OwnLimit, name)
	}
}

// TestOnlyACompleteLogProvesThatNothingWasKilled: the oldest record must be the log's first, or
// from before the time that is asked about.
func TestOnlyACompleteLogProvesThatNothingWasKilled(t *testing.T) {
	t.Parallel()
	for record, want := range map[string]bool{
		"6,0,50000000,-;booting\n": true, "6,7,4000000,-;older\n": true, "6,7,50000000,-;newer\n": false,
	} {
		search := killSearch{since: 5 * time.Second, now: time.Minute}
		search.add(record)
		search.add("6,8,50000001,-;the next\n")
		require.Equal(t, want, search.reaches, record)
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
	require.Contains(t, ReadKills(hog.Pid, "", time.Minute).Line, "(dd)")

	killed := start(t, g, "sleep", "600")
	require.NoError(t, killed.Kill())
	_, err = killed.Wait()
	require.NoError(t, err)
	require.Empty(t, ReadKills(killed.Pid, "", time.Minute).Line)
}
