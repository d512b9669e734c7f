//go:build unix

package local_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// endless runs until its time limit.
func (b bench) endless(tb testing.TB, ttl time.Duration) sandbox.Sandbox {
	tb.Helper()
	return b.create(tb, sandbox.Spec{Command: []string{"sleep", "600"}, TTL: ttl})
}

// TestALaterEndIsObeyed by the supervisor, whoever has stored it and is gone; the timeline says so.
func TestALaterEndIsObeyed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.endless(t, 2*time.Second)
	until := s.ExpiresAt.Add(1500 * time.Millisecond)
	was, err := open(t, b.state, nil).Extend(t.Context(), s.ID, until)
	require.NoError(t, err)
	assert.Equal(t, s.ExpiresAt, was.ExpiresAt)
	now, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	assert.True(t, until.Equal(now.ExpiresAt), "%s", now.ExpiresAt)
	last := b.ended(t, s.ID)
	assert.False(t, last.EndedAt.Before(until), "it ended at %s, before %s", last.EndedAt, until)
	assert.Equal(t, sandbox.CauseTimeout, last.Exit.Cause)
	assert.True(t, until.Equal(last.ExpiresAt))
	events, err := b.Events(t.Context(), s.ID)
	require.NoError(t, err)
	var named []string
	for _, e := range events {
		named = append(named, e.Event)
	}
	assert.Contains(t, named, "extended")
}

// TestAnExtensionAtTheEndIsKeptOrRefused: what was accepted in the last moment is obeyed, too.
func TestAnExtensionAtTheEndIsKeptOrRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.endless(t, 300*time.Millisecond)
	end := s.ExpiresAt
	limit := time.Now().Add(2 * time.Second)
	for time.Now().Before(limit) {
		if time.Until(end) > 10*time.Millisecond {
			if _, err := b.Get(t.Context(), s.ID); err != nil {
				break
			}
			continue
		}
		next := end.Add(100 * time.Millisecond)
		if _, err := b.Extend(t.Context(), s.ID, next); err != nil {
			break
		}
		end = next
	}
	last := b.ended(t, s.ID)
	assert.False(t, last.EndedAt.Before(end), "it ended at %s, and %s was accepted", last.EndedAt, end)
	_, err := b.Extend(t.Context(), s.ID, time.Now().Add(time.Hour))
	assert.Equal(t, fault.KindGone, fault.KindOf(err), "%v", err)
}

// TestNoSweepEndsWhatWasExtended, however long the first end is over by the clock.
func TestNoSweepEndsWhatWasExtended(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.endless(t, time.Minute)
	_, err := b.Extend(t.Context(), s.ID, s.ExpiresAt.Add(time.Hour))
	require.NoError(t, err)
	later := b.at(t, func() time.Time { return time.Now().Add(30 * time.Minute) })
	swept, err := later.Sweep(t.Context())
	require.NoError(t, err)
	assert.Empty(t, swept.Refs)
	now, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateRunning, now.State)
}

// TestWhatIsNotExtended: a supervisor of an older sbx would end it all the same, and a file that is no time moves
// nothing.
func TestWhatIsNotExtended(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old, odd, free := b.endless(t, time.Minute), b.endless(t, time.Minute), b.endless(t, time.Minute)
	file := filepath.Join(b.state, "local", old.ID, "record.json")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), `"end_moves": true`)
	require.NoError(t, os.WriteFile(file, bytes.Replace(text, []byte(`"end_moves": true`), []byte(`"end_moves": false`), 1), 0o600))
	_, err = b.Extend(t.Context(), old.ID, time.Now().Add(time.Hour))
	assert.Equal(t, fault.KindUnsupported, fault.KindOf(err), "%v", err)
	require.NoError(t, os.WriteFile(filepath.Join(b.state, "local", old.ID, "end.json"), []byte("2036-01-02T03:04:05Z"), 0o600))
	now, err := b.Get(t.Context(), old.ID)
	require.NoError(t, err)
	assert.Equal(t, old.ExpiresAt, now.ExpiresAt, "it is not obeyed there")

	require.NoError(t, os.WriteFile(filepath.Join(b.state, "local", odd.ID, "end.json"), []byte("tomorrow"), 0o600))
	now, err = b.Get(t.Context(), odd.ID)
	require.NoError(t, err)
	assert.Equal(t, odd.ExpiresAt, now.ExpiresAt)

	require.NoError(t, b.Terminate(t.Context(), free.ID, providers.TerminateOptions{By: "test"}))
	_, err = b.Extend(t.Context(), free.ID, time.Now().Add(time.Hour))
	assert.Equal(t, fault.KindGone, fault.KindOf(err), "%v", err)
}
