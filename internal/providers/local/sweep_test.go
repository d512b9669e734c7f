//go:build unix

package local_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/local/record"
	"sbx/internal/sandbox"
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
