package incident

import (
	"context"
	"encoding/json"
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
	code := 10
	require.NoError(t, f.Append(t.Context(), "i-1",
		Event{Kind: Seen, At: noon().Add(time.Minute), Actor: alice(), Verb: "diagnose", ExitCode: &code, Figures: []Figure{{Name: "stuck", Value: new(25.0)}, {Name: "active"}}},
		note("rolled back")))
	i := read(t, f, "i-1")
	assert.Equal(t, Open, i.State)
	assert.Equal(t, "agents hang", i.Start.Title)
	assert.Equal(t, Schema, i.Start.Schema)
	assert.Equal(t, alice(), i.StartedBy)
	require.Len(t, i.Events, 3)
	assert.Equal(t, Seen, i.Events[1].Kind)
	assert.Equal(t, 2, i.Events[1].Seq)
	assert.Nil(t, i.Events[1].Figures[1].Value, "not known is not 0")
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
	require.NoError(t, f.Append(t.Context(), "i-1", Event{Kind: Seen, At: noon(), Verb: "ls"}))
	assert.Len(t, read(t, f, "i-1").Events, 2, "what is closed records no verbs")
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
	require.NoError(t, f.Append(t.Context(), "i-1", note("one"), note("two")))
	text, err := os.ReadFile(journalOf(f, "i-1"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(journalOf(f, "i-1"), []byte(strings.Replace(string(text), `"two"`, `"TWO"`, 1)), 0o600))
	i := read(t, f, "i-1")
	assert.Equal(t, Damaged, i.State)
	assert.Contains(t, i.Problem, "line 3 was changed")
	assert.Len(t, i.Events, 2)
	assert.Equal(t, fault.KindRefused, fault.KindOf(f.Append(t.Context(), "i-1", note("three"))))
	_, err = f.Redact(t.Context(), "i-1", Replacer([]string{"agents"}), note(""))
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
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

func TestARecordOfANewerVersionIsOnlyRead(t *testing.T) {
	t.Parallel()
	f := started(t, "i-1")
	require.NoError(t, f.Append(t.Context(), "i-1", note("one")))
	log, err := journal.Read(f.disk("i-1"), "i-1")
	require.NoError(t, err)
	log.Entries[0].Data = json.RawMessage(strings.Replace(string(log.Entries[0].Data), "sbx.incident/v1", "sbx.incident/v2", 1))
	log.Entries[1].Kind = "foreseen"
	text, err := journal.Rechain("i-1", log.Entries)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(journalOf(f, "i-1"), text, 0o600))
	i := read(t, f, "i-1")
	assert.Equal(t, Damaged, i.State)
	assert.Contains(t, i.Problem, `of version "sbx.incident/v2"`)
	require.Len(t, i.Events, 2, "what can be read is")
	assert.Equal(t, "one", i.Events[1].Text)
	assert.Equal(t, fault.KindRefused, fault.KindOf(f.Append(t.Context(), "i-1", note("two"))))
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
		require.False(t, i.Truncated)
		require.Equal(t, "two", i.Events[len(i.Events)-1].Text)
	}
	require.NoError(t, os.WriteFile(journalOf(f, "i-1"), nil, 0o600))
	assert.Contains(t, read(t, f, "i-1").Problem, "was killed")
}

func TestASnapshotIsBesideTheJournal(t *testing.T) {
	t.Parallel()
	f := started(t, "i-1")
	content := []byte(`{"a":1}`)
	s, err := f.AddSnapshot(t.Context(), "i-1", "diagnose.json", content, Event{At: noon(), Actor: alice(), Verb: "diagnose"})
	require.NoError(t, err)
	second, err := f.AddSnapshot(t.Context(), "i-1", "diagnose.json", []byte(`{"a":2}`), Event{At: noon(), Actor: alice()})
	require.NoError(t, err)
	assert.NotEqual(t, s.File, second.File, "each is kept")
	got, err := f.ReadSnapshot(t.Context(), "i-1", s)
	require.NoError(t, err)
	assert.Equal(t, content, got)
	assert.Equal(t, []Snapshot{s, second}, read(t, f, "i-1").Snapshots())
	for path, want := range map[string]os.FileMode{f.path("i-1"): 0o700, f.path("i-1", s.File): 0o600, journalOf(f, "i-1"): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode().Perm(), path)
	}
	require.NoError(t, os.WriteFile(f.path("i-1", s.File), []byte(`{"a":9}`), 0o600))
	_, err = f.ReadSnapshot(t.Context(), "i-1", s)
	require.ErrorContains(t, err, "was changed after it was written")
	require.NoError(t, os.Remove(f.path("i-1", s.File)))
	_, err = f.ReadSnapshot(t.Context(), "i-1", s)
	require.ErrorContains(t, err, "is missing")
	for _, name := range []string{"", "../x", ".hidden", "a/b", strings.Repeat("a", 80)} {
		_, err = f.AddSnapshot(t.Context(), "i-1", name, content, Event{})
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), name)
	}
	_, err = f.ReadSnapshot(t.Context(), "i-1", Snapshot{File: "../i-1.jsonl"})
	require.ErrorContains(t, err, "no file of it")
}

// TestAForgottenIncidentDoesNotGrowForEver: what verbs have only seen is left out, and acts and notes are
// still taken.
func TestAForgottenIncidentDoesNotGrowForEver(t *testing.T) {
	t.Parallel()
	f := started(t, "i-1")
	for range maxSnapshots {
		require.NoError(t, f.Append(t.Context(), "i-1", Event{Kind: Snapshotted, At: noon(), Snapshot: &Snapshot{Name: "a", File: "snapshots/a"}}))
	}
	_, err := f.AddSnapshot(t.Context(), "i-1", "a.json", []byte("{}"), Event{At: noon()})
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	require.ErrorContains(t, err, "200 snapshots, the most")
	assert.NoDirExists(t, f.path("i-1", "snapshots"))

	writeEvents(t, f, maxSeen-len(read(t, f, "i-1").Events))
	seen := Event{Kind: Seen, At: noon(), Verb: "ls"}
	require.ErrorContains(t, f.Append(t.Context(), "i-1", seen), "5000 events, the most")
	require.NoError(t, f.Append(t.Context(), "i-1", Event{Kind: Acted, At: noon(), Verb: "cleanup"}))
	require.NoError(t, f.Append(t.Context(), "i-1", seen, Event{Kind: Escalated, At: noon()}))
	require.NoError(t, f.Append(t.Context(), "i-1", note("x")))
}

// writeEvents adds events without a sync for each.
func writeEvents(t *testing.T, f Folder, n int) {
	t.Helper()
	log, err := journal.Read(f.disk("i-1"), "i-1")
	require.NoError(t, err)
	data, err := json.Marshal(note("x"))
	require.NoError(t, err)
	for range n {
		log.Entries = append(log.Entries, journal.Entry{At: noon(), Kind: string(Noted), Data: data})
	}
	text, err := journal.Rechain("i-1", log.Entries)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(journalOf(f, "i-1"), text, 0o600))
}

func TestASnapshotHasABound(t *testing.T) {
	t.Parallel()
	f := started(t, "i-1")
	_, err := f.AddSnapshot(t.Context(), "i-1", "a.json", make([]byte, maxSnapshot+1), Event{At: noon()})
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	i := &Incident{Events: []Event{{Snapshot: &Snapshot{Bytes: maxSnapshotBytes - 1}}}}
	assert.True(t, i.hasRoom(1))
	assert.False(t, i.hasRoom(2))
}

func redactEvent() Event {
	return Event{Kind: Redacted, At: noon(), Actor: alice(), Redaction: &Redaction{Patterns: 1, Secrets: 1}}
}

// TestARedactionReachesOldSnapshots, and says that it was.
func TestARedactionReachesOldSnapshots(t *testing.T) {
	t.Parallel()
	f := started(t, "i-1")
	require.NoError(t, f.Append(t.Context(), "i-1", note(`the token is "s3cr3t-value"`), note("nothing here")))
	old, err := f.AddSnapshot(t.Context(), "i-1", "diagnose.json", []byte(`{"key": ["x s3cr3t-value y", "s3cr3t-value", 1.50]}`), Event{At: noon(), Actor: alice()})
	require.NoError(t, err)
	plain, err := f.AddSnapshot(t.Context(), "i-1", "clean.json", []byte(`{}`), Event{At: noon(), Actor: alice()})
	require.NoError(t, err)
	found, err := f.Redact(t.Context(), "i-1", Replacer([]string{"s3cr3t-value", "ab"}), redactEvent())
	require.NoError(t, err)
	assert.Equal(t, Redaction{Patterns: 1, Secrets: 1, Places: 3, Events: 1, Files: 1}, found)
	i := read(t, f, "i-1")
	require.Empty(t, i.Problem)
	last := i.Events[len(i.Events)-1]
	assert.Equal(t, Redacted, last.Kind)
	assert.Equal(t, found, *last.Redaction)
	assert.Equal(t, `the token is "[redacted]"`, i.Events[1].Text)
	snapshots := i.Snapshots()
	assert.Equal(t, plain, snapshots[1])
	got, err := f.ReadSnapshot(t.Context(), "i-1", snapshots[0])
	require.NoError(t, err)
	assert.JSONEq(t, `{"key": ["x [redacted] y", "[redacted]", 1.50]}`, string(got))
	assert.Contains(t, string(got), "1.50", "what is no secret stays as it was")
	assert.NoFileExists(t, f.path("i-1", old.File))
	assertNowhere(t, f.Dir, "s3cr3t-value")

	before, err := os.ReadFile(journalOf(f, "i-1"))
	require.NoError(t, err)
	again, err := f.Redact(t.Context(), "i-1", Replacer([]string{"s3cr3t-value"}), redactEvent())
	require.NoError(t, err)
	assert.Zero(t, again.Places)
	after, err := os.ReadFile(journalOf(f, "i-1"))
	require.NoError(t, err)
	assert.Equal(t, before, after, "nothing was found, and nothing changed")
	require.NoError(t, f.Append(t.Context(), "i-1", note("goes on")))
	require.Empty(t, read(t, f, "i-1").Problem)
}

// TestAKilledRedactionLeavesNoSecretBehindTheNextOne: it was killed behind the rename, so that the old
// snapshot is still there.
func TestAKilledRedactionLeavesNoSecretBehindTheNextOne(t *testing.T) {
	t.Parallel()
	f := started(t, "i-1")
	s, err := f.AddSnapshot(t.Context(), "i-1", "a.json", []byte(`"s3cr3t-value"`), Event{At: noon()})
	require.NoError(t, err)
	_, err = f.Redact(t.Context(), "i-1", Replacer([]string{"s3cr3t-value"}), redactEvent())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.path("i-1", s.File), []byte(`"s3cr3t-value"`), 0o600))
	require.NoError(t, os.WriteFile(f.path("i-1", ".i-1.jsonl-1.tmp"), []byte(`"s3cr3t-value"`), 0o600))
	_, err = f.Redact(t.Context(), "i-1", Replacer([]string{"s3cr3t-value"}), redactEvent())
	require.NoError(t, err)
	assertNowhere(t, f.Dir, "s3cr3t-value")
}

func assertNowhere(t *testing.T, dir, secret string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		assert.NotContains(t, string(text), secret, path)
		return err
	}))
}

func FuzzRewrite(f *testing.F) {
	f.Add([]byte(`{"a":"se\"cret","b":[1,"\u0073ecret"]}`))
	f.Add([]byte(`"secret`))
	f.Add([]byte(`"\`))
	f.Add([]byte(`{"secret":{"b":"x"},"c":["secret",{"secret":"secret"}]}]},`))
	f.Fuzz(func(t *testing.T, text []byte) {
		out, n := rewriter{replace: Replacer([]string{"secret"})}.rewrite(text, func(string) place { return placeText })
		if n == 0 && string(out) != string(text) {
			t.Fatalf("%q became %q, and nothing was replaced", text, out)
		}
		if !json.Valid(text) {
			return
		}
		if err := sameStructure(text, out, func(string) place { return placeText }); err != nil {
			t.Fatalf("%q became %q: %s", text, out, err)
		}
		var v any
		if json.Unmarshal(out, &v) == nil && strings.Contains(flat(v), "secret") {
			t.Fatalf("%q keeps it: %q", text, out)
		}
	})
}

// flat joins the texts of a value, without keys.
func flat(v any) string {
	switch v := v.(type) {
	case string:
		return v + "\n"
	case []any:
		var all strings.Builder
		for _, item := range v {
			all.WriteString(flat(item))
		}
		return all.String()
	case map[string]any:
		var all strings.Builder
		for _, item := range v {
			all.WriteString(flat(item))
		}
		return all.String()
	}
	return ""
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
	held, err := f.lockAll(t.Context(), alice())
	require.NoError(t, err)
	defer held()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = f.Start(ctx, "i-2", Event{Kind: Started, Start: &Start{}})
	require.Error(t, err)
}

// BenchmarkNoneIsOpen is what every command pays without an incident.
func BenchmarkNoneIsOpen(b *testing.B) {
	f := Folder{Dir: filepath.Join(b.TempDir(), "incidents"), Now: noon}
	for b.Loop() {
		if id, err := f.Current(); id != "" || err != nil {
			b.Fatal(id, err)
		}
	}
}

// BenchmarkAppend is what a command pays while one is open, behind a thousand events.
func BenchmarkAppend(b *testing.B) {
	f := Folder{Dir: filepath.Join(b.TempDir(), "incidents"), Now: noon}
	if _, err := f.Start(b.Context(), "i-1", Event{Kind: Started, At: noon(), Start: &Start{}}); err != nil {
		b.Fatal(err)
	}
	events := make([]Event, 1000)
	for i := range events {
		events[i] = note("a note of some length, as people write them")
	}
	if err := f.Append(b.Context(), "i-1", events...); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := f.Append(b.Context(), "i-1", note("x")); err != nil {
			b.Fatal(err)
		}
	}
}
