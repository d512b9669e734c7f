package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/history"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// TestEventsComeBack: of many looks of a watch the first and the last, what they say otherwise and what was
// sent each by itself; they are stored once, and kept for a week.
func TestEventsComeBack(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	now := start
	st := store.Memory(func() time.Time { return now })
	r := history.NewRecorder(func() time.Time { return now })
	for second := range 5 {
		stuck := int64(second)
		r.AddEvent(history.Event{At: start.Add(time.Duration(second) * time.Second), Verb: "stats", Providers: []string{"prod"}, Figures: []history.Figure{{Name: "stuck", Value: &stuck}, {Name: "active"}}})
		r.AddEvent(history.Event{At: start, Verb: "verify", Text: "too many", Message: &history.Message{To: []string{"slack"}}})
	}
	r.AddEvent(history.Event{At: start, Verb: "create", Providers: []string{"prod"}, Text: "created prod/a"})
	r.AddEvent(history.Event{At: start, Verb: "create", Providers: []string{"prod"}, Text: "created prod/b"})
	assert.True(t, r.Pending())
	now = now.Add(time.Minute)
	require.Error(t, r.Flush(t.Context(), lockedStore{st}))
	require.NoError(t, r.Flush(t.Context(), st))
	assert.False(t, r.Pending())

	events, err := history.Events(t.Context(), st, start)
	require.NoError(t, err)
	require.Len(t, events, 2+5+2)
	last := events[len(events)-1]
	assert.Equal(t, new(int64(4)), last.Figures[0].Value, "the last look")
	assert.Nil(t, last.Figures[1].Value, "not known is not 0")
	events, err = history.Events(t.Context(), st, start.Add(time.Second))
	require.NoError(t, err)
	assert.Len(t, events, 1, "not those before")

	now = now.Add(8 * 24 * time.Hour)
	r.AddEvent(history.Event{At: now, Verb: "verify", Met: true})
	require.NoError(t, r.Flush(t.Context(), st))
	events, err = history.Events(t.Context(), st, start)
	require.NoError(t, err)
	assert.Len(t, events, 1)
}

// TestEvidenceSinceATime is that of every sandbox of the profile, and of no listing.
func TestEvidenceSinceATime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 3, 30, 0, 0, time.UTC)
	st := store.Memory(func() time.Time { return now })
	r := history.NewRecorder(func() time.Time { return now })
	box := func(id string) sandbox.Sandbox {
		return sandbox.Sandbox{Provider: "prod", ID: id, State: sandbox.StateFailed}
	}
	r.AddCounts("prod", map[sandbox.State]int64{sandbox.StateRunning: 3})
	r.AddListed("prod", []history.Seen{{Sandbox: box("listed"), At: now}})
	r.AddSeen(history.Seen{Sandbox: box("early"), At: now.Add(-10 * time.Minute), Live: true})
	r.AddSeen(history.Seen{Sandbox: box("late"), At: now, Live: true, Causes: []history.Cause{{ID: "loop"}}})
	require.NoError(t, r.Flush(t.Context(), st))
	seen, err := history.SeenSince(t.Context(), st, "prod", now.Add(-time.Minute))
	require.NoError(t, err)
	require.Len(t, seen, 1)
	assert.Equal(t, "late", seen[0].Sandbox.ID)
	assert.Equal(t, "loop", seen[0].Causes[0].ID)
}
