//go:build unix

package local_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

// stubborn forks twice into sessions of their own and ignores TERM everywhere.
const stubborn = `trap "" TERM INT HUP
(setsid sh -c '(setsid sleep 600 &) ; sleep 600' &)
echo up; sleep 600`

func (b bench) store() record.Store { return record.Store{Root: filepath.Join(b.state, "local")} }

func (b bench) record(tb testing.TB, id string) record.Record {
	tb.Helper()
	r, err := b.store().Read(id)
	require.NoError(tb, err)
	return r
}

// nothingLeft asserts that no process carries the sandbox's marker.
func nothingLeft(tb testing.TB, id string) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		left, err := identity.Host().Marked(wire.MarkerKey, id)
		require.NoError(tb, err)
		for _, p := range left {
			if !p.Dead() {
				return false
			}
		}
		return true
	}, tiertest.Limit(tb), time.Millisecond, "processes of %s are left", id)
}

func (b bench) waitFor(tb testing.TB, id, text string) {
	tb.Helper()
	require.Eventually(tb, func() bool { return strings.Contains(b.output(tb, id), text) }, tiertest.Limit(tb), 2*time.Millisecond)
}

func TestTerminateEndsAStubbornTree(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, stubborn)
	b.waitFor(t, s.ID, "up")
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{Grace: 5 * time.Second, By: "test"}))
	e, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, sandbox.StateTerminated, e.State)
	require.Equal(t, sandbox.ClassKilledByUs, e.Exit.Class)
	if tiertest.IsLong("that a tree that ignores TERM ends before its grace of 5 s") {
		require.Less(t, e.EndedAt.Sub(b.record(t, s.ID).Exit.Stop.At), 4*time.Second, "ignoring TERM buys no grace")
	}
	nothingLeft(t, s.ID)
	require.Equal(t, fault.KindGone, fault.KindOf(b.Terminate(t.Context(), s.ID, providers.TerminateOptions{})))
}

func TestGraceLetsAProgramFinish(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, `trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done`)
	b.waitFor(t, s.ID, "up")
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{Grace: 10 * time.Second, By: "test"}))
	require.Contains(t, b.output(t, s.ID), "bye")
}

func TestTakingNoteOfTermBuysNoTime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const indifferent = `trap : TERM; echo up; while :; do sleep 600 & wait; done`
	for name, fullGrace := range map[string]bool{"patient": true, "not patient": false} {
		s := b.sh(t, indifferent)
		b.waitFor(t, s.ID, "up")
		require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{Grace: 2 * time.Second, FullGrace: fullGrace, By: "test"}))
		r := b.record(t, s.ID)
		took := r.EndedAt.Sub(r.Exit.Stop.At)
		require.Equal(t, fullGrace, took >= 2*time.Second, "%s: %s", name, took)
		nothingLeft(t, s.ID)
	}
}

// TestAGivenGraceIsGrantedWhole: also where every process ignores TERM, as the help of
// terminate says.
func TestAGivenGraceIsGrantedWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, `trap '' TERM; echo up; sleep 600`)
	b.waitFor(t, s.ID, "up")
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{Grace: time.Second, FullGrace: true, By: "test"}))
	r := b.record(t, s.ID)
	require.GreaterOrEqual(t, r.EndedAt.Sub(r.Exit.Stop.At), time.Second)
	nothingLeft(t, s.ID)

	s = b.sh(t, `trap '' TERM; echo up; until test -e "$HOME/asked"; do sleep 0.05; done; echo finished`)
	b.waitFor(t, s.ID, "up")
	ended := make(chan error)
	go func() {
		ended <- b.Terminate(t.Context(), s.ID, providers.TerminateOptions{Grace: time.Hour, FullGrace: true, By: "test"})
	}()
	dir := b.store().Dir(s.ID)
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(dir, "stop.json")); return err == nil }, tiertest.Limit(t), 5*time.Millisecond)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "home", "asked"), nil, 0o600))
	require.NoError(t, <-ended)
	require.Contains(t, b.output(t, s.ID), "finished", "what ends within its grace is not killed")
}

func TestTwoTerminatesAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, stubborn)
	b.waitFor(t, s.ID, "up")
	results := make(chan error, 2)
	for range 2 {
		go func() { results <- b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "test"}) }()
	}
	for range 2 {
		if err := <-results; err != nil {
			require.Equal(t, fault.KindGone, fault.KindOf(err))
		}
	}
	require.Equal(t, sandbox.StateTerminated, b.ended(t, s.ID).State)
	nothingLeft(t, s.ID)
}

func TestSupervisorKilledTakesTheProgramAlong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, stubborn)
	b.waitFor(t, s.ID, "up")
	supervisor := b.record(t, s.ID).Supervisor
	require.NoError(t, syscall.Kill(supervisor.PID, syscall.SIGKILL))
	swept(t, b, s.ID)
	nothingLeft(t, s.ID)
	e, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, sandbox.StateFailed, e.State)
	require.Equal(t, sandbox.CauseSupervisorLost, e.Exit.Cause)
	require.Nil(t, e.Exit.Code)
	for _, path := range cgroupPaths(t, b.record(t, s.ID)) {
		require.NoDirExists(t, path)
	}
}

// swept sweeps until the sandbox is in its end state.
func swept(t *testing.T, b bench, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := b.Sweep(t.Context())
		require.NoError(t, err)
		return b.record(t, id).State.Ended()
	}, tiertest.Limit(t), 5*time.Millisecond)
}

func TestSweepSparesAForeignProcessUnderARecordedPID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, "sleep 600")
	require.NoError(t, syscall.Kill(b.record(t, s.ID).Supervisor.PID, syscall.SIGKILL))
	nothingLeft(t, s.ID)

	// The numbers in the record now belong to this very test process.
	r := b.record(t, s.ID)
	for _, p := range []*identity.Process{&r.Supervisor, &r.Stub, &r.Program} {
		p.PID = os.Getpid()
	}
	require.NoError(t, b.store().Write(r))
	swept(t, b, s.ID)
	require.Equal(t, sandbox.CauseSupervisorLost, b.ended(t, s.ID).Exit.Cause)
}

func TestCgroupRemovedUnderneath(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, stubborn)
	b.waitFor(t, s.ID, "up")
	paths := cgroupPaths(t, b.record(t, s.ID))
	if len(paths) == 0 {
		t.Skip("no cgroup on this machine")
	}
	for _, path := range paths {
		moveOut(t, path)
	}
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "test"}))
	require.Equal(t, sandbox.StateTerminated, b.ended(t, s.ID).State)
	nothingLeft(t, s.ID)
}

// moveOut moves every task to where this test runs and removes the directory.
// In v2 the groups above may hand controllers down and then hold no process.
func moveOut(t *testing.T, path string) {
	t.Helper()
	above := filepath.Dir(filepath.Dir(path))
	if own, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		if group, pure := strings.CutPrefix(strings.TrimSpace(string(own)), "0::"); pure {
			above = filepath.Join("/sys/fs/cgroup", group)
		}
	}
	require.Eventually(t, func() bool {
		for _, list := range []string{"tasks", "cgroup.procs"} {
			raw, err := os.ReadFile(filepath.Join(path, list))
			if err != nil {
				continue
			}
			for pid := range strings.FieldsSeq(string(raw)) {
				_ = os.WriteFile(filepath.Join(above, list), []byte(pid), 0)
			}
		}
		err := syscall.Rmdir(path)
		return err == nil || os.IsNotExist(err)
	}, tiertest.Limit(t), 5*time.Millisecond)
}

func cgroupPaths(t *testing.T, r record.Record) []string {
	t.Helper()
	var paths []string
	for part := range strings.SplitSeq(string(r.Cgroup), `"`) {
		if strings.HasPrefix(part, "/") {
			paths = append(paths, part)
		}
	}
	return paths
}

func TestTTLEndsASandbox(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: []string{"sleep", "600"}, TTL: 300 * time.Millisecond})
	e := b.ended(t, s.ID)
	require.Equal(t, sandbox.StateFailed, e.State)
	require.Equal(t, sandbox.ClassTimeout, e.Exit.Class)
	require.Equal(t, sandbox.CauseTimeout, e.Exit.Cause)
}

func TestHungSupervisorIsEndedOverItsHead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, stubborn)
	b.waitFor(t, s.ID, "up")
	require.NoError(t, syscall.Kill(b.record(t, s.ID).Supervisor.PID, syscall.SIGSTOP))
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "test"}))
	e := b.ended(t, s.ID)
	require.Equal(t, sandbox.StateTerminated, e.State)
	require.Equal(t, sandbox.ClassKilledByUs, e.Exit.Class)
	nothingLeft(t, s.ID)
}

func TestStartFailures(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, []byte("no program"), 0o600))
	script := filepath.Join(t.TempDir(), "noheader")
	require.NoError(t, os.WriteFile(script, []byte("echo hi\n"), 0o700))
	for name, tc := range map[string]struct {
		spec sandbox.Spec
		want fault.Kind
		code int
	}{
		"missing":        {sandbox.Spec{Command: []string{"no-such-program-here"}}, fault.KindCommandNotFound, 127},
		"missing path":   {sandbox.Spec{Command: []string{"/no/such/program"}}, fault.KindCommandNotFound, 127},
		"not executable": {sandbox.Spec{Command: []string{plain}}, fault.KindNotExecutable, 126},
		"a folder":       {sandbox.Spec{Command: []string{"/"}}, fault.KindNotExecutable, 126},
		"no interpreter": {sandbox.Spec{Command: []string{script}}, fault.KindNotExecutable, 126},
		"no workdir":     {sandbox.Spec{Command: []string{"true"}, Workdir: "/no/such/folder"}, fault.KindUsage, 2},
		"no command":     {sandbox.Spec{}, fault.KindUsage, 2},
		"tiny memory":    {sandbox.Spec{Command: []string{"true"}, MemoryBytes: 1 << 10}, fault.KindUsage, 2},
		"an image":       {sandbox.Spec{Command: []string{"true"}, Image: "debian"}, fault.KindUnsupported, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := b.Create(t.Context(), tc.spec)
			require.Equal(t, tc.want, fault.KindOf(err), "%v", err)
			require.Equal(t, tc.code, fault.ExitCode(err))
		})
	}
}

func TestEnvironmentIsClearedAndNeverStored(t *testing.T) {
	t.Setenv("SBX_TEST_SECRET", "hunter2")
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: []string{"env"}, Env: []string{"TOKEN=s3cr3t-value"}})
	b.ended(t, s.ID)
	out := b.output(t, s.ID)
	require.Contains(t, out, "TOKEN=s3cr3t-value")
	require.NotContains(t, out, "hunter2")
	for line := range strings.SplitSeq(out, "\n") {
		key, _, _ := strings.Cut(line, "=")
		require.Contains(t, []string{"HOME", "TMPDIR", "TERM", "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TOKEN", wire.MarkerKey, "PWD"}, key)
	}
	for _, name := range []string{"record.json", "supervisor.log"} {
		raw, err := os.ReadFile(filepath.Join(b.store().Dir(s.ID), name))
		require.NoError(t, err)
		require.NotContains(t, string(raw), "s3cr3t-value")
	}
}

func TestForkBombHitsItsProcessLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: []string{"sh", "-c", `(for i in $(seq 1000); do sleep 600 & done); exec sleep 600`}, PIDs: 64})
	needHard(t, s)
	require.Eventually(t, func() bool {
		u, err := b.Usage(t.Context(), s.ID)
		return err == nil && u.PIDs != nil && *u.PIDs > 30
	}, tiertest.Limit(t), 10*time.Millisecond)
	u, err := b.Usage(t.Context(), s.ID)
	require.NoError(t, err)
	require.LessOrEqual(t, *u.PIDs, int64(64))
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "test"}))
	nothingLeft(t, s.ID)
}

// TestGarbageRecordHidesNothingAndCanBeRemoved: a listing stays complete, so that the
// others can be found and cleaned; of the one nothing is concluded.
func TestGarbageRecordHidesNothingAndCanBeRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	good := b.sh(t, "sleep 600")
	bad := b.sh(t, "sleep 600")
	groups := cgroupPaths(t, b.record(t, bad.ID))
	require.NoError(t, os.WriteFile(filepath.Join(b.store().Dir(bad.ID), "record.json"), []byte("{garbage"), 0o600))
	states := map[string]sandbox.State{}
	for s, err := range b.List(t.Context(), providers.Query{}) {
		require.NoError(t, err)
		states[s.ID] = s.State
		require.Equal(t, s.ID == bad.ID, strings.Contains(s.RawState, "unreadable record"))
	}
	require.Equal(t, map[string]sandbox.State{good.ID: sandbox.StateRunning, bad.ID: sandbox.StateUnknown}, states)
	for r, err := range b.Records(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, r.SandboxID == bad.ID, r.Live == sandbox.Unknown)
	}
	require.NoError(t, b.Terminate(t.Context(), bad.ID, providers.TerminateOptions{Delete: true}))
	nothingLeft(t, bad.ID)
	require.NoDirExists(t, b.store().Dir(bad.ID))
	for _, path := range groups {
		require.NoDirExists(t, path)
	}
}

func TestNewerRecordIsReadOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, "sleep 600")
	r := b.record(t, s.ID)
	r.Schema = record.Schema + 1
	require.NoError(t, b.store().Write(r))
	got, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, sandbox.StateRunning, got.State)
	require.Equal(t, fault.KindRefused, fault.KindOf(b.Terminate(t.Context(), s.ID, providers.TerminateOptions{})))
	r.Schema = record.Schema
	require.NoError(t, b.store().Write(r))
}

func TestEndedRecordsStayADayAndAtMost200(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var ended []record.Ended
	for i := range 300 {
		ended = append(ended, record.Ended{ID: strconv.Itoa(i), At: now.Add(-time.Duration(i) * time.Minute)})
	}
	ended = append(ended, record.Ended{ID: "old", At: now.Add(-25 * time.Hour)})
	gone := record.Expired(ended, now)
	require.Len(t, gone, 101)
	require.Equal(t, "200", gone[0].ID)
	require.Equal(t, "old", gone[100].ID)
}

func TestFoldersThatACreateLeftGoAfterAMinute(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lock, err := b.store().Prepare("withlock")
	require.NoError(t, err)
	require.NoError(t, lock.Close())
	require.NoError(t, os.Mkdir(b.store().Dir("withnothing"), 0o700))
	_, err = b.Sweep(t.Context())
	require.NoError(t, err)
	require.DirExists(t, b.store().Dir("withlock"), "somebody may be about to write its record")
	require.DirExists(t, b.store().Dir("withnothing"))
	old := time.Now().Add(-2 * time.Minute)
	for _, id := range []string{"withlock", "withnothing"} {
		require.NoError(t, os.Chtimes(b.store().Dir(id), old, old))
	}
	ctx := t.Context()
	require.EventuallyWithT(t, func(t *assert.CollectT) { // a fork of another test may hold the lock until its exec
		_, err := b.Sweep(ctx)
		require.NoError(t, err)
		require.NoDirExists(t, b.store().Dir("withlock"))
		require.NoDirExists(t, b.store().Dir("withnothing"))
	}, tiertest.Limit(t), 5*time.Millisecond)
}

func TestGroupsOfAFolderRemovedByHandAreTidiedUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dead, alive := b.sh(t, "sleep 600"), b.sh(t, "sleep 600")
	deadGroups, aliveGroups := cgroupPaths(t, b.record(t, dead.ID)), cgroupPaths(t, b.record(t, alive.ID))
	if len(deadGroups) == 0 {
		t.Skip("no cgroup on this machine")
	}
	require.NoError(t, syscall.Kill(b.record(t, dead.ID).Supervisor.PID, syscall.SIGKILL))
	nothingLeft(t, dead.ID)
	require.NoError(t, os.RemoveAll(b.store().Dir(dead.ID)))
	aside := filepath.Join(t.TempDir(), "aside")
	require.NoError(t, os.Rename(b.store().Dir(alive.ID), aside), "as on a volume that is not mounted")
	ctx := t.Context()
	require.EventuallyWithT(t, func(t *assert.CollectT) { // a group is left to the next sweep until its last process is gone
		_, err := b.Sweep(ctx)
		require.NoError(t, err)
		for _, path := range deadGroups {
			require.NoDirExists(t, path)
		}
	}, tiertest.Limit(t), 5*time.Millisecond)
	require.NoError(t, os.Rename(aside, b.store().Dir(alive.ID)))
	for _, path := range aliveGroups {
		require.DirExists(t, path)
	}
	got, err := b.Get(t.Context(), alive.ID)
	require.NoError(t, err)
	require.Equal(t, sandbox.StateRunning, got.State, "what cannot be seen is no orphan")
}
