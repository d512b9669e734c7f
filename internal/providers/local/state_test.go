//go:build unix

package local_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

// A supervisor that has written its last record and exits before its lock is released, or
// whose lock is seen for the last time, was not lost.
func TestSweepClaimsOnlyWhatItDid(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, "exit 0")
	b.ended(t, s.ID)
	lock := filepath.Join(b.state, "local", s.ID, "lock")
	require.Eventually(t, func() bool { return !b.store().Unfinished(s.ID) }, tiertest.Limit(t), 5*time.Millisecond)
	require.NoError(t, os.WriteFile(lock, nil, 0o600))

	swept, err := b.Sweep(t.Context())
	require.NoError(t, err)
	assert.Empty(t, swept.Refs)
	assert.NoFileExists(t, lock)
	last, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateTerminated, last.State)
}

// The end may be visible before it can be recorded, as on a full disk.
func TestListShowsAnEndThatIsNotRecorded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, "sleep 600")
	supervisor := b.record(t, s.ID).Supervisor
	require.NoError(t, syscall.Kill(supervisor.PID, syscall.SIGKILL))
	nothingLeft(t, s.ID)
	// Its threads go one by one: the program may be dead before the lock is free.
	require.Eventually(t, func() bool {
		alive, err := supervisor.Alive()
		return err == nil && !alive
	}, tiertest.Limit(t), time.Millisecond)
	require.Eventually(t, func() bool { // a child of another test holds the lock between fork and exec
		var states []sandbox.State
		for s, err := range b.List(t.Context(), providers.Query{}) {
			require.NoError(t, err)
			states = append(states, s.State)
		}
		return slices.Equal([]sandbox.State{sandbox.StateFailed}, states)
	}, tiertest.Limit(t), time.Millisecond)
}

func TestFilesAmongTheFoldersAreNoSandboxes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	root := filepath.Join(b.state, "local")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "empty"), 0o700))
	stray := filepath.Join(root, "README")
	require.NoError(t, os.WriteFile(stray, []byte("hello"), 0o600))
	for s, err := range b.List(t.Context(), providers.Query{All: true}) {
		t.Errorf("listed: %v %v", s.Ref(), err)
	}
	_, err := b.Sweep(t.Context())
	require.NoError(t, err)
	assert.FileExists(t, stray)
	_, err = b.Get(t.Context(), "README")
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
}

// "Cannot look" is never "nothing there".
func TestStateFolderThatIsNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.NoError(t, os.WriteFile(filepath.Join(b.state, "local"), []byte("no folder"), 0o600))

	_, err := b.Get(t.Context(), "abcdefghij")
	assert.Equal(t, fault.KindUsage, fault.KindOf(err), "%v", err)
	assert.NotEmpty(t, fault.HintOf(err))
	for _, err := range b.List(t.Context(), providers.Query{}) {
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	}
	err = b.Terminate(t.Context(), "abcdefghij", providers.TerminateOptions{By: "test"})
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	_, err = b.Sweep(t.Context())
	require.NoError(t, err, "told by the verb itself")
}

// Its state is unknown, so that no caller waits for it or takes it for running; a delete can
// end it, whichever of its processes are dead.
func TestGarbageRecordIsUnreadable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, killed := range []bool{false, true} {
		s := b.sh(t, "sleep 600")
		supervisor := b.record(t, s.ID).Supervisor.PID
		require.NoError(t, os.WriteFile(filepath.Join(b.state, "local", s.ID, "record.json"), []byte("[1]"), 0o600))
		if killed {
			require.NoError(t, syscall.Kill(supervisor, syscall.SIGKILL))
		}
		_, err := b.Get(t.Context(), s.ID)
		require.ErrorIs(t, err, providers.ErrUnreadable)
		require.Error(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "test"}))
		require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{Delete: true}))
		nothingLeft(t, s.ID)
		_, err = b.Get(t.Context(), s.ID)
		require.Equal(t, fault.KindNotFound, fault.KindOf(err))
	}
}

// A killed supervisor counts as dead while its last thread still holds the lock.
func TestGarbageIsDroppedWhenItsLockIsLetGo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, "exit 0")
	b.ended(t, s.ID)
	require.Eventually(t, func() bool { return !b.store().Unfinished(s.ID) }, tiertest.Limit(t), 5*time.Millisecond)
	dir := filepath.Join(b.state, "local", s.ID)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "record.json"), []byte("[1]"), 0o600))
	lock, err := os.Create(filepath.Join(dir, "lock"))
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))

	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Error(t, b.Terminate(short, s.ID, providers.TerminateOptions{Delete: true}))
	require.DirExists(t, dir)

	time.AfterFunc(50*time.Millisecond, func() { _ = lock.Close() })
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{Delete: true}))
	require.NoDirExists(t, dir)
}
