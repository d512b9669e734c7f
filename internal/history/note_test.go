package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/history"
	"sbx/internal/store"
)

// TestNotesComeBack in the order of what they are about, also two of one moment, and long after looks are forgotten.
func TestNotesComeBack(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	st := store.Memory(func() time.Time { return now })
	add := func(text string, at, written time.Time) {
		require.NoError(t, history.AddNote(t.Context(), st, history.Note{At: at, Written: written, Who: "alice", Text: text}))
	}
	month := now.Add(30 * 24 * time.Hour)
	add("a", now, now)
	add("b", now, now)
	add("earlier", now.Add(-time.Hour), month)
	notes, err := history.Notes(t.Context(), st, now)
	require.NoError(t, err)
	var texts []string
	for _, n := range notes {
		texts = append(texts, n.Text)
	}
	require.Len(t, texts, 3)
	assert.Equal(t, "earlier", texts[0])
	assert.ElementsMatch(t, []string{"a", "b"}, texts[1:])

	add("next year", now, now.Add(history.NoteRules().Keep+time.Hour))
	notes, err = history.Notes(t.Context(), st, now)
	require.NoError(t, err)
	assert.Len(t, notes, 2, "the month's and the last")
}
