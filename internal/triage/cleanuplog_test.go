package triage

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCleanupLogKnowsBothSpellings(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 10, 0, 0, time.UTC)
	one := ReadCleanupLog("2026-11-22T12:00:00Z Sandbox cleanup started\n"+
		"2026-11-22T12:00:01Z Found 2 sandboxes to cleanup\n"+
		"2026-11-22T12:00:02Z Cleaned up sandbox-1\n"+
		"2026-11-22T12:00:03Z Cleaned up sandbox-2\n"+
		"2026-11-22T12:00:04Z Cleanup completed\n", now)
	two := ReadCleanupLog("[2026-11-22 12:00:00] Starting sandbox cleanup\n"+
		"[2026-11-22 12:00:02] Cleaned up sandbox a1\n"+
		`{"timestamp":"2026-11-22T12:00:02Z","message":"Failed to cleanup a2: Error: sandbox not found"}`+"\n"+
		"unrelated\n[2026-11-22 12:00:04] Cleanup completed: 1 sandboxes removed\n"+
		"[2026-11-22 12:05:00] Starting sandbox cleanup\n[2026-11-22 12:05:01] Cleanup job failed: Error: 500\n", now)

	require.Len(t, one.Runs, 1)
	assert.Equal(t, 2, *one.Runs[0].Found)
	assert.Equal(t, 2, one.Runs[0].Removed)
	assert.Empty(t, one.Runs[0].Failure())
	assert.Empty(t, one.Doubts)
	require.Len(t, two.Runs, 2)
	assert.Equal(t, 1, two.Runs[0].Failed)
	assert.Equal(t, "1 of 2 sandboxes were not removed", two.Runs[0].Failure())
	assert.Contains(t, two.Runs[1].Failure(), "Cleanup job failed")
	assert.Empty(t, two.Doubts)

	var sig FleetSignals
	two.AddTo(&sig, 5*time.Minute)
	assert.Equal(t, time.Date(2026, 11, 22, 12, 5, 1, 0, time.UTC), sig.CleanupSeen)
	assert.Equal(t, int64(2), *sig.CleanupFailures)
}

// TestCleanupLogCountsOnlyRemovals: a line with the words "cleaned up" may say that nothing was.
func TestCleanupLogCountsOnlyRemovals(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 10, 0, 0, time.UTC)
	for line, want := range map[string]struct{ removed, failed int }{
		"Cleaned up sandbox-1":                   {1, 0},
		"Cleaned up sandbox 0a1":                 {1, 0},
		"cleaned up 0 sandboxes":                 {0, 0},
		"Cleaned up 3 sandboxes":                 {0, 0},
		"No sandboxes cleaned up":                {0, 0},
		"Nothing was cleaned up":                 {0, 0},
		"sandbox a1 was not cleaned up":          {0, 1},
		"a1 could not be cleaned up: Error: 500": {0, 1},
		"a1 wasn't cleaned up":                   {0, 1},
		"a1 cannot be cleaned up":                {0, 1},
	} {
		l := ReadCleanupLog("2026-11-22T12:00:00Z Sandbox cleanup started\n2026-11-22T12:00:01Z "+line+"\n", now)
		require.Len(t, l.Runs, 1, line)
		assert.Equal(t, want.removed, l.Runs[0].Removed, line)
		assert.Equal(t, want.failed, l.Runs[0].Failed, line)
	}
	l := ReadCleanupLog("2026-11-22T12:00:00Z Sandbox cleanup started\n2026-11-22T12:00:01Z Cleaned up a1\n2026-11-22T12:00:02Z cleaned up 2 sandboxes\n2026-11-22T12:00:03Z Cleanup completed\n", now)
	assert.Equal(t, []string{"1 runs claim another number of removed sandboxes than their lines show"}, l.Doubts)
}

func TestCleanupLogIsNotBelievedWhereItContradictsItself(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 10, 0, 0, time.UTC)
	l := ReadCleanupLog("2026-11-22T12:05:00Z Sandbox cleanup started\n"+
		"2026-11-22T12:05:01Z Cleaned up a\n2026-11-22T12:05:02Z Cleanup completed: 7 sandboxes removed\n"+
		"2026-11-22T11:00:00Z Sandbox cleanup started\n2027-01-01T00:00:00Z Cleanup completed\n"+
		"Cleanup completed\n", now)
	at, _ := l.newest()
	assert.Equal(t, time.Date(2026, 11, 22, 12, 5, 2, 0, time.UTC), at, "neither the future nor a step back")
	assert.Equal(t, []string{
		"the time of 1 lines is in the future; they are not used",
		"the time of 1 lines is before that of earlier lines; they are not used",
		"1 runs end without a beginning: the log is cut, or lines are missing",
		"1 runs claim another number of removed sandboxes than their lines show",
	}, l.Doubts)
}

func TestCleanupLogOfGarbageTellsNothing(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 10, 0, 0, time.UTC)
	for name, text := range map[string]string{
		"nothing": "", "binary": "\x00\xff\xfe{\n{\"timestamp\":1e400}\n[]", "other": strings.Repeat("GET /health 200\n", 50),
		"without times": "Sandbox cleanup started\nCleanup completed\n",
	} {
		var sig FleetSignals
		ReadCleanupLog(text, now).AddTo(&sig, 5*time.Minute)
		assert.False(t, sig.CleanupRead, name)
	}
	var sig FleetSignals
	ReadCleanupLog("2026-11-22T11:00:00Z GET /health\n2026-11-22T12:00:00Z GET /health\n", now).AddTo(&sig, 5*time.Minute)
	assert.True(t, sig.CleanupRead, "an hour without a line of cleanup: it does not run (R55)")
	assert.True(t, sig.CleanupSeen.IsZero())
}

func FuzzCleanupLog(f *testing.F) {
	f.Add("2026-11-22T12:00:00Z Sandbox cleanup started\n{\"ts\":1,\"msg\":[\"Cleaned up\",1]}")
	f.Fuzz(func(t *testing.T, text string) {
		now := time.Date(2026, 11, 22, 12, 10, 0, 0, time.UTC)
		l := ReadCleanupLog(text, now)
		at, _ := l.newest()
		assert.False(t, at.After(now.Add(logClockSkew)))
		assert.LessOrEqual(t, l.Matched, l.Lines)
	})
}
