//go:build unix

package local_test

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers/local"
	"sbx/internal/providers/local/record"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

// A record is read once the time on the lock is over, and not before.
func TestSweepEndsWhatIsOverdue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: []string{"sleep", "600"}, TTL: 10 * time.Minute})
	due, unfinished := b.store().Due(s.ID)
	require.True(t, unfinished)
	assert.WithinDuration(t, s.ExpiresAt, due, time.Microsecond, "the lock bears the time that the record says")

	r := b.record(t, s.ID)
	r.ExpiresAt, r.Limits.TTLSeconds = time.Now().Add(-time.Hour), -3600
	require.NoError(t, b.store().Write(r))
	swept, err := b.Sweep(t.Context())
	require.NoError(t, err)
	assert.Empty(t, swept.Refs)

	require.NoError(t, b.store().SetDue(s.ID, r.ExpiresAt))
	swept, err = b.Sweep(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []sandbox.Ref{s.Ref()}, swept.Refs)
	got, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	assert.True(t, got.State.Ended(), got.State)
	nothingLeft(t, s.ID)
}

// The time on the lock is a hint: the record decides.
func TestSweepEndsNothingByTheLockAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: []string{"sleep", "600"}, TTL: 10 * time.Minute})
	require.NoError(t, b.store().SetDue(s.ID, time.Now().Add(-time.Hour)))
	swept, err := b.Sweep(t.Context())
	require.NoError(t, err)
	assert.Empty(t, swept.Refs)
	got, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateRunning, got.State)
}

func TestDueEndsWithTheLock(t *testing.T) {
	t.Parallel()
	s := record.Store{Root: t.TempDir()}
	lock, err := s.Prepare("abc")
	require.NoError(t, err)
	defer lock.Close()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	require.NoError(t, s.SetDue("abc", at))
	due, unfinished := s.Due("abc")
	assert.True(t, unfinished)
	assert.True(t, due.Equal(at), due)
	require.NoError(t, s.Finish("abc"))
	_, unfinished = s.Due("abc")
	assert.False(t, unfinished)
	require.Error(t, s.SetDue("abc", at), "no lock is made anew")
}

// TestSweepRemovesWhatADeadProcessLeft, running or ended, with its record; one whose process lives or is not known
// stays, as does what is tied to none.
func TestSweepRemovesWhatADeadProcessLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := func(tied bool, command ...string) sandbox.Sandbox {
		return b.create(t, sandbox.Spec{Command: command, TTL: 10 * time.Minute, Tied: tied})
	}
	lost, ended := made(true, "sleep", "600"), made(true, "true")
	live, unknown, free := made(true, "sleep", "600"), made(true, "sleep", "600"), made(false, "sleep", "600")
	elsewhere := made(true, "sleep", "600")
	require.Eventually(t, func() bool { return b.record(t, ended.ID).State.Ended() }, tiertest.Limit(t), 5*time.Millisecond)
	swept, err := b.Sweep(t.Context())
	require.NoError(t, err)
	assert.Empty(t, swept)

	dead := exec.CommandContext(t.Context(), "sleep", "600")
	require.NoError(t, dead.Start())
	host, err := os.Hostname()
	require.NoError(t, err)
	gone := record.Creator{Host: host, PID: dead.Process.Pid, Birth: local.Birth(dead.Process.Pid)}
	require.NoError(t, dead.Process.Kill())
	_ = dead.Wait()
	for _, s := range []sandbox.Sandbox{lost, ended} {
		require.NoError(t, b.store().Tie(s.ID, gone))
	}
	require.NoError(t, b.store().Tie(unknown.ID, record.Creator{Host: host, PID: gone.PID}))
	require.NoError(t, b.store().Tie(elsewhere.ID, record.Creator{Host: "another", PID: gone.PID, Birth: gone.Birth})) // the folder may be shared
	require.NoError(t, b.store().Tie("neverwas01", gone))

	swept, err = b.Sweep(t.Context())
	require.NoError(t, err)
	assert.ElementsMatch(t, []sandbox.Ref{lost.Ref(), ended.Ref()}, swept.Tied)
	assert.Empty(t, swept.Refs)
	nothingLeft(t, lost.ID)
	for _, s := range []sandbox.Sandbox{lost, ended} {
		_, err := b.Get(t.Context(), s.ID)
		assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
	}
	for _, s := range []sandbox.Sandbox{live, unknown, free, elsewhere} {
		got, err := b.Get(t.Context(), s.ID)
		require.NoError(t, err)
		assert.Equal(t, sandbox.StateRunning, got.State)
	}
	ties, err := b.store().Ties()
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{live.ID, unknown.ID, elsewhere.ID}, slices.Collect(maps.Keys(ties)))
}
