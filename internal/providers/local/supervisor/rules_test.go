//go:build unix

package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

// TestGrowthLongBeforeADeathIsToldApart: only growth that was seen, and a counter that has stood still since.
func TestGrowthLongBeforeADeathIsToldApart(t *testing.T) {
	t.Parallel()
	began := time.Now()
	seen := func(values ...int64) *oomGrowth { // one each second
		g := &oomGrowth{}
		for i, v := range values {
			g.note(&v, began.Add(time.Duration(i)*oomEvery))
		}
		g.note(nil, began.Add(time.Hour))
		return g
	}
	died := began.Add(9 * time.Second)
	assert.Equal(t, 8*time.Second, seen(0, 1, 1, 1).before(new(int64(1)), died))
	assert.Equal(t, 6*time.Second, seen(0, 1, 1, 2).before(new(int64(2)), died), "the last of two")
	assert.Zero(t, seen(0, 1, 1, 1).before(new(int64(2)), died), "it grew since: at the death")
	assert.Zero(t, seen(0, 0, 0).before(new(int64(1)), died), "its growth was not seen")
	assert.Zero(t, seen(0, 0, 0).before(new(int64(0)), died), "it has not grown")
	assert.Zero(t, seen(0, 0, 0, 0, 0, 0, 0, 1).before(new(int64(1)), died), "just before")
	assert.Zero(t, seen(0, 1).before(nil, died), "the counter cannot be read")
}

func TestLookPathFindsWhatAShellWould(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	for file, mode := range map[string]fs.FileMode{
		filepath.Join(first, "plain"): 0o600, filepath.Join(second, "tool"): 0o700, filepath.Join(second, "plain"): 0o700, filepath.Join(first, "only"): 0o600,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"), mode))
	}
	require.NoError(t, os.Mkdir(filepath.Join(second, "folder"), 0o700))
	env := []string{"PATH=/nonsense", "PATH=first:" + second + ":/no/such/folder"}
	for name, want := range map[string]string{
		"tool": filepath.Join(second, "tool"), "plain": filepath.Join(second, "plain"), "second/tool": filepath.Join(second, "tool"), "./second/tool": filepath.Join(second, "tool"),
	} {
		got, err := lookPath(name, dir, env)
		require.NoError(t, err, name)
		assert.Equal(t, want, got)
	}
	for name, want := range map[string]wire.FailKind{
		"": wire.FailNotFound, "missing": wire.FailNotFound, "./missing": wire.FailNotFound, "first/plain/x": wire.FailNotFound,
		"only": wire.FailNotExecutable, "folder": wire.FailNotExecutable, "first/plain": wire.FailNotExecutable, second: wire.FailNotExecutable,
	} {
		_, err := lookPath(name, dir, env)
		require.Error(t, err, name)
		assert.Equal(t, want, wire.AsFail(err).Kind, "%q: %v", name, err)
	}
	_, err := lookPath("tool", filepath.Join(dir, "gone"), env)
	assert.Equal(t, wire.FailWorkdir, wire.AsFail(err).Kind)
	_, err = lookPath("tool", filepath.Join(first, "plain"), env)
	assert.Equal(t, wire.FailWorkdir, wire.AsFail(err).Kind, "a file is no working directory")
	_, err = lookPath("tool", dir, nil)
	assert.Equal(t, wire.FailNotFound, wire.AsFail(err).Kind, "without a PATH nothing is found")
}

func TestStartFailSortsTheSystemsReasons(t *testing.T) {
	t.Parallel()
	here := t.TempDir()
	for name, tc := range map[string]struct {
		dir  string
		err  error
		want wire.FailKind
	}{
		"interpreter gone": {here, &fs.PathError{Op: "fork/exec", Path: "x", Err: syscall.ENOENT}, wire.FailNotFound},
		"folder gone":      {filepath.Join(here, "gone"), &fs.PathError{Op: "chdir", Path: "x", Err: syscall.ENOENT}, wire.FailWorkdir},
		"no permission":    {here, &fs.PathError{Op: "fork/exec", Path: "x", Err: syscall.EACCES}, wire.FailNotExecutable},
		"no header":        {here, &fs.PathError{Op: "fork/exec", Path: "x", Err: syscall.ENOEXEC}, wire.FailNotExecutable},
		"too many":         {here, &fs.PathError{Op: "fork/exec", Path: "x", Err: syscall.EAGAIN}, wire.FailLauncher},
		"something else":   {here, errors.New("boom"), wire.FailLauncher},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := startFail("prog", tc.dir, tc.err)
			assert.Equal(t, tc.want, got.Kind)
			assert.NotContains(t, got.Message, "fork/exec", "the system's own word, without the name of the call")
		})
	}
}

func TestEndState(t *testing.T) {
	t.Parallel()
	zero, three := 0, 3
	stop := &record.Stop{By: "somebody"}
	for name, tc := range map[string]struct {
		exit record.Exit
		want sandbox.State
		say  string
	}{
		"exit 0":            {record.Exit{Code: &zero}, sandbox.StateTerminated, "exit 0"},
		"exit 3":            {record.Exit{Code: &three}, sandbox.StateFailed, "exit 3"},
		"a signal":          {record.Exit{Signal: 9}, sandbox.StateFailed, "signal 9"},
		"stopped":           {record.Exit{Signal: 9, Stop: stop}, sandbox.StateTerminated, "stopped by somebody"},
		"exit 0 after time": {record.Exit{Code: &zero, TimedOut: true}, sandbox.StateFailed, "it reached its time limit"},
		"the watchdog":      {record.Exit{Signal: 9, WatchdogBytes: 70 << 20}, sandbox.StateFailed, "the watchdog saw 70 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, record.Record{Exit: &tc.exit}.EndState())
			assert.Equal(t, tc.say, describeExit(tc.exit))
		})
	}
}

func TestReactionIsMovementInTheTree(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	later := func(d time.Duration) time.Time { return at.Add(d) }
	one, two := identity.Stat{PID: 7, UTimeSTimeTicks: 1}, identity.Stat{PID: 8}
	worked := identity.Stat{PID: 7, UTimeSTimeTicks: 2}
	r := newReaction(at)
	assert.False(t, r.isStill([]identity.Stat{one, two}, at))
	assert.False(t, r.isStill([]identity.Stat{two, one}, later(stillness-1)), "not still for long enough")
	assert.False(t, r.isStill([]identity.Stat{one}, later(stillness)), "one has ended")
	assert.False(t, r.isStill([]identity.Stat{worked}, later(2*stillness-1)), "it used the processor")
	ready := worked
	ready.State = 'R'
	assert.False(t, r.isStill([]identity.Stat{ready}, later(3*stillness-1)), "it would work if it had a processor")
	assert.True(t, r.isStill([]identity.Stat{worked}, later(4*stillness-1)))
}

func TestBackstopStandsWellAboveTheLimit(t *testing.T) {
	t.Parallel()
	assert.Equal(t, int64(256<<20), dataLimit(64<<20))
}

func TestExited(t *testing.T) {
	t.Parallel()
	assert.Equal(t, wire.Exited{Code: 3}, exitReport(syscall.WaitStatus(3<<8)))
	assert.Equal(t, wire.Exited{Signal: 9}, exitReport(syscall.WaitStatus(9)))
}
