package incident

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/journal"
)

func noon() time.Time { return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) }

func note(text string) Event { return Event{Kind: Noted, At: noon(), Text: text} }

// write adds a record as an earlier version wrote it.
func write(t *testing.T, f Folder, id, schema string, entries ...Event) {
	t.Helper()
	w, err := journal.Create(f.disk(id), id, noon)
	require.NoError(t, err)
	start := &Start{Schema: schema, Title: "agents hang", Providers: []string{"prod"}}
	require.NoError(t, w.Append(string(Started), Event{At: noon(), Actor: Actor{Who: "alice", Host: "h1"}, Start: start}))
	for _, e := range entries {
		require.NoError(t, w.Append(string(e.Kind), e))
	}
	require.NoError(t, w.Close())
}

func folder(t *testing.T) Folder {
	t.Helper()
	return Folder(filepath.Join(t.TempDir(), "incidents"))
}

func read(t *testing.T, f Folder, id string) *Incident {
	t.Helper()
	i, err := f.Read(id)
	require.NoError(t, err)
	return i
}

// TestARecordIsRead without what verbs saw and did, which other records have.
func TestARecordIsRead(t *testing.T) {
	t.Parallel()
	f := folder(t)
	ids, err := f.IDs()
	require.NoError(t, err)
	assert.Empty(t, ids, "the folder is not there")
	write(t, f, "i-1", Schema, Event{Kind: "seen"}, Event{Kind: Acknowledged}, Event{Kind: "acted"}, note("one"), Event{Kind: Closed, At: noon().Add(time.Hour), As: "false-alarm"})
	i := read(t, f, "i-1")
	assert.Empty(t, i.Problem)
	assert.Equal(t, "agents hang", i.Start.Title)
	assert.Equal(t, "alice", i.StartedBy.Who)
	assert.Equal(t, noon(), i.StartedAt)
	assert.Equal(t, noon().Add(time.Hour), i.ClosedAt)
	var kinds []Kind
	for _, e := range i.Events {
		kinds = append(kinds, e.Kind)
	}
	assert.Equal(t, []Kind{Started, Acknowledged, Noted, Closed}, kinds)
	assert.Equal(t, "false-alarm", i.Events[3].As)
}

func TestAnIncidentIsFoundByTheBeginningOfItsID(t *testing.T) {
	t.Parallel()
	f := folder(t)
	write(t, f, "i-20261123t1200-aa", Schema)
	write(t, f, "i-20261123t1300-bb", Schema)
	for word, want := range map[string]string{"i-20261123t12": "i-20261123t1200-aa", "20261123t13": "i-20261123t1300-bb", "i-20261123t1300-bb": "i-20261123t1300-bb"} {
		id, err := f.Find(word)
		require.NoError(t, err, word)
		assert.Equal(t, want, id)
	}
	_, err := f.Find("i-2026")
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	for _, word := range []string{"i-9", "", "../x"} {
		_, err = f.Find(word)
		assert.Equal(t, fault.KindNotFound, fault.KindOf(err), word)
	}
	_, err = f.Read("../x")
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
}

// TestADamagedRecordIsReadAsFarAsItHolds; a last line that a kill has left incomplete is no damage.
func TestADamagedRecordIsReadAsFarAsItHolds(t *testing.T) {
	t.Parallel()
	f := folder(t)
	write(t, f, "i-1", Schema, note("one"), note("two"))
	file := filepath.Join(string(f), "i-1", "i-1.jsonl")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		text, problem string
		events        int
	}{
		"changed": {strings.Replace(string(text), `"two"`, `"TWO"`, 1), "line 3 was changed", 2},
		"torn":    {string(text[:len(text)-9]), "", 2},
		"empty":   {"", "was killed", 0},
		"garbage": {"garbage\n{}\n", "changed or damaged", 0},
	} {
		require.NoError(t, os.WriteFile(file, []byte(tc.text), 0o600))
		i := read(t, f, "i-1")
		assert.Len(t, i.Events, tc.events, name)
		if tc.problem == "" {
			assert.Empty(t, i.Problem, name)
			continue
		}
		assert.Contains(t, i.Problem, tc.problem, name)
	}
	write(t, f, "i-2", "sbx.incident/v2", Event{Kind: "foreseen", Text: "zero"}, note("one"))
	i := read(t, f, "i-2")
	assert.Contains(t, i.Problem, `of version "sbx.incident/v2"`)
	require.Len(t, i.Events, 2, "what can be read is")
}
