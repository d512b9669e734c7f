package incident

import (
	"context"
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

func alice() Actor { return Actor{Who: "alice", Host: "h1", PID: 7, Version: "1"} }

func started(t *testing.T, id string) Folder {
	t.Helper()
	f := Folder{Dir: filepath.Join(t.TempDir(), "incidents"), Now: noon}
	start(t, f, id)
	return f
}

func start(t *testing.T, f Folder, id string) {
	t.Helper()
	_, err := f.Start(t.Context(), id, Event{Kind: Started, At: noon(), Actor: alice(), Start: &Start{Title: "agents hang", Providers: []string{"prod"}}})
	require.NoError(t, err)
}

func note(text string) Event { return Event{Kind: Noted, At: noon(), Actor: alice(), Text: text} }

func read(t *testing.T, f Folder, id string) *Incident {
	t.Helper()
	i, err := f.Read(id)
	require.NoError(t, err)
	return i
}

func TestWhatIsRecordedIsRead(t *testing.T) {
	t.Parallel()
	f := Folder{Dir: filepath.Join(t.TempDir(), "not", "there"), Now: noon}
	open, err := f.Current()
	require.NoError(t, err)
	assert.Empty(t, open, "none was started")
	ids, err := f.IDs()
	require.NoError(t, err)
	assert.Empty(t, ids)

	start(t, f, "i-1")
	require.NoError(t, f.Append(t.Context(), "i-1", note("rolled back")))
	i := read(t, f, "i-1")
	assert.Equal(t, Open, i.State)
	assert.Equal(t, "agents hang", i.Start.Title)
	assert.Equal(t, Schema, i.Start.Schema)
	assert.Equal(t, alice(), i.StartedBy)
	require.Len(t, i.Events, 2)
	assert.Equal(t, Noted, i.Events[1].Kind)
	assert.Equal(t, "rolled back", i.Events[1].Text)
	open, err = f.Current()
	require.NoError(t, err)
	assert.Equal(t, "i-1", open)

	left, err := f.Close(t.Context(), "i-1", Event{Kind: Closed, At: noon().Add(time.Hour), Actor: alice(), As: FalseAlarm})
	require.NoError(t, err)
	assert.Empty(t, left)
	i = read(t, f, "i-1")
	assert.Equal(t, StateEnded, i.State)
	assert.Equal(t, FalseAlarm, i.As)
	assert.Equal(t, noon().Add(time.Hour), i.ClosedAt)
	open, err = f.Current()
	require.NoError(t, err)
	assert.Empty(t, open)
}

func TestOneIsOpenAtATime(t *testing.T) {
	t.Parallel()
	f := started(t, "i-1")
	_, err := f.Start(t.Context(), "i-2", Event{Kind: Started, At: noon(), Actor: alice(), Start: &Start{}})
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	require.ErrorContains(t, err, "i-1 is open (agents hang), started by alice")
	_, err = f.Close(t.Context(), "i-1", Event{Kind: Closed, At: noon(), As: Resolved})
	require.NoError(t, err)
	start(t, f, "i-2")
	_, err = f.Close(t.Context(), "i-1", Event{Kind: Closed, At: noon(), As: Resolved})
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "it was closed already")
	open, _ := f.Current()
	assert.Equal(t, "i-2", open, "the refusal has closed no other")
}

// TestAKillLeavesTheFileOfTheOpenOne in any state: the record decides.
func TestAKillLeavesTheFileOfTheOpenOne(t *testing.T) {
	t.Parallel()
	f := started(t, "i-1")
	pointer := filepath.Join(f.Dir, "open")
	require.NoError(t, os.Remove(pointer)) // killed between the record and the file that names it
	_, err := f.Start(t.Context(), "i-2", Event{Kind: Started, At: noon(), Start: &Start{}})
	require.ErrorContains(t, err, "i-1 is open")
	open, err := f.Current()
	require.NoError(t, err)
	assert.Equal(t, "i-1", open, "it is named again")

	require.NoError(t, f.Append(t.Context(), "i-1", Event{Kind: Closed, At: noon(), As: Resolved})) // killed before the file was removed
	start(t, f, "i-2")

	require.NoError(t, os.WriteFile(pointer, []byte("../../etc"), 0o600))
	_, err = f.Current()
	require.ErrorContains(t, err, "holds no id")
}

func TestAnIncidentIsFoundByTheBeginningOfItsID(t *testing.T) {
	t.Parallel()
	f := started(t, "i-20261123t1200-aa")
	_, err := f.Close(t.Context(), "i-20261123t1200-aa", Event{Kind: Closed})
	require.NoError(t, err)
	start(t, f, "i-20261123t1300-bb")
	for word, want := range map[string]string{"i-20261123t12": "i-20261123t1200-aa", "20261123t13": "i-20261123t1300-bb", "i-20261123t1300-bb": "i-20261123t1300-bb"} {
		id, err := f.Find(word)
		require.NoError(t, err, word)
		assert.Equal(t, want, id)
	}
	_, err = f.Find("i-2026")
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	for _, word := range []string{"i-9", "", "../x"} {
		_, err = f.Find(word)
		assert.Equal(t, fault.KindNotFound, fault.KindOf(err), word)
	}
	_, err = f.Read("../x")
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
	assert.Equal(t, fault.KindNotFound, fault.KindOf(f.Append(t.Context(), "i-9", note("x"))))
}

func journalOf(f Folder, id string) string { return filepath.Join(f.Dir, id, id+".jsonl") }

// TestADamagedRecordIsReadAsFarAsItHolds, and nothing is added to it.
func TestADamagedRecordIsReadAsFarAsItHolds(t *testing.T) {
	t.Parallel()
	f := started(t, "i-1")
	require.NoError(t, f.Append(t.Context(), "i-1", note("one")))
	require.NoError(t, f.Append(t.Context(), "i-1", note("two")))
	text, err := os.ReadFile(journalOf(f, "i-1"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(journalOf(f, "i-1"), []byte(strings.Replace(string(text), `"two"`, `"TWO"`, 1)), 0o600))
	i := read(t, f, "i-1")
	assert.Equal(t, Damaged, i.State)
	assert.Contains(t, i.Problem, "line 3 was changed")
	assert.Len(t, i.Events, 2)
	assert.Equal(t, fault.KindRefused, fault.KindOf(f.Append(t.Context(), "i-1", note("three"))))
	_, err = f.Start(t.Context(), "i-2", Event{Kind: Started, Start: &Start{}})
	require.ErrorContains(t, err, "cannot be written")
	left, err := f.Close(t.Context(), "i-1", Event{Kind: Closed})
	require.NoError(t, err)
	assert.Contains(t, left, "line 3 was changed")
	start(t, f, "i-2")
	after, err := os.ReadFile(journalOf(f, "i-1"))
	require.NoError(t, err)
	assert.Len(t, after, len(text), "it is left as it was")
}

// write makes a record of entries as another version may have written them.
func write(t *testing.T, id, schema string, entries ...Event) Folder {
	t.Helper()
	f := Folder{Dir: filepath.Join(t.TempDir(), "incidents"), Now: noon}
	w, err := journal.Create(f.disk(id), id, noon)
	require.NoError(t, err)
	require.NoError(t, w.Append(string(Started), Event{At: noon(), Start: &Start{Schema: schema, Title: "agents hang"}}))
	for _, e := range entries {
		require.NoError(t, w.Append(string(e.Kind), e))
	}
	require.NoError(t, w.Close())
	return f
}

func TestARecordOfANewerVersionIsOnlyRead(t *testing.T) {
	t.Parallel()
	f := write(t, "i-1", "sbx.incident/v2", Event{Kind: "foreseen", Text: "zero"}, note("one"))
	i := read(t, f, "i-1")
	assert.Equal(t, Damaged, i.State)
	assert.Contains(t, i.Problem, `of version "sbx.incident/v2"`)
	require.Len(t, i.Events, 2, "what can be read is")
	assert.Equal(t, "one", i.Events[1].Text)
	assert.Equal(t, fault.KindRefused, fault.KindOf(f.Append(t.Context(), "i-1", note("two"))))
}

// TestARecordOfAnOlderVersionIsRead without what verbs saw and did, which other records have; and it goes on.
func TestARecordOfAnOlderVersionIsRead(t *testing.T) {
	t.Parallel()
	f := write(t, "i-1", Schema, Event{Kind: "seen"}, Event{Kind: Acknowledged}, Event{Kind: "acted"}, Event{Kind: "snapshot"}, note("one"), Event{Kind: "redacted"})
	require.NoError(t, f.Append(t.Context(), "i-1", note("two")))
	i := read(t, f, "i-1")
	assert.Equal(t, Open, i.State)
	assert.Empty(t, i.Problem)
	var kinds []Kind
	for _, e := range i.Events {
		kinds = append(kinds, e.Kind)
	}
	assert.Equal(t, []Kind{Started, Acknowledged, Noted, Noted}, kinds)
}

// TestATornLineIsReplaced: a process was killed while it wrote.
func TestATornLineIsReplaced(t *testing.T) {
	t.Parallel()
	f := started(t, "i-1")
	require.NoError(t, f.Append(t.Context(), "i-1", note("one")))
	whole, err := os.ReadFile(journalOf(f, "i-1"))
	require.NoError(t, err)
	first := strings.IndexByte(string(whole), '\n') + 1
	for cut := first; cut < len(whole); cut += 17 {
		require.NoError(t, os.WriteFile(journalOf(f, "i-1"), whole[:cut], 0o600))
		require.Empty(t, read(t, f, "i-1").Problem)
		require.NoError(t, f.Append(t.Context(), "i-1", note("two")))
		i := read(t, f, "i-1")
		require.Empty(t, i.Problem)
		require.Equal(t, "two", i.Events[len(i.Events)-1].Text)
	}
	require.NoError(t, os.WriteFile(journalOf(f, "i-1"), nil, 0o600))
	assert.Contains(t, read(t, f, "i-1").Problem, "was killed")
}

func TestARecordIsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	f := started(t, "i-1")
	for path, want := range map[string]os.FileMode{string(f.disk("i-1")): 0o700, journalOf(f, "i-1"): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode().Perm(), path)
	}
}

// TestAReadOnlyFolderIsAnError with what to do.
func TestAReadOnlyFolderIsAnError(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root writes anywhere; incident.txtar mounts a file system read-only")
	}
	f := started(t, "i-1")
	require.NoError(t, os.Chmod(journalOf(f, "i-1"), 0o400))
	err := f.Append(t.Context(), "i-1", note("x"))
	assert.Contains(t, fault.HintOf(err), "read-only")
}

// TestALockThatStaysIsSaid, and does not last for ever.
func TestALockThatStaysIsSaid(t *testing.T) {
	t.Parallel()
	f := started(t, "i-1")
	held, err := f.lock(t.Context(), alice())
	require.NoError(t, err)
	defer held()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = f.Start(ctx, "i-2", Event{Kind: Started, Start: &Start{}})
	require.Error(t, err)
}
