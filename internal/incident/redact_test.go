package incident

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/sandbox"
)

func matcher(text string) func(string) (string, int) {
	pattern := regexp.MustCompile(text)
	return Replacer(nil, func(s string) (string, int) {
		return pattern.ReplaceAllString(s, RedactedText), len(pattern.FindAllStringIndex(s, -1))
	})
}

// full is a record with an event of each form, and a look in a snapshot.
func full(t *testing.T) (Folder, Snapshot) {
	t.Helper()
	f := started(t, "i-1")
	zero, at := 0, noon()
	evidence := []sandbox.Evidence{{What: "cpu", Value: "97 of 2026", Source: "provider", At: at}}
	require.NoError(t, f.Append(t.Context(), "i-1",
		Event{Kind: Noted, At: at, Actor: alice(), Text: "since 2026 customer-7 waits", Question: "R7", Milestone: MilestoneDetected},
		Event{
			Kind: Acted, At: at, Actor: alice(), Verb: "terminate", Line: "sbx terminate local/customer-7", ExitCode: &zero,
			Flags:  []Check{{ID: "R18", Title: "a flag", Verdict: sandbox.True, Evidence: evidence}},
			Causes: []Cause{{ID: "infinite_loop", Title: "a cause", Confidence: sandbox.Confidence("likely"), Evidence: evidence}},
			Acts:   []Act{{Ref: "local/customer-7", Name: "of customer-7", Action: "terminate", Outcome: "verified", Run: "r-1"}},
		},
		Event{Kind: Stepped, At: at, Actor: alice(), Step: &Step{Run: "b-1", Runbook: "sandbox-stuck", ID: "look", Title: "Look", Kind: "manual", State: "done", Verdict: "true", Answer: "2026", Began: at, Ended: at}},
	))
	look := `{"schema":"sbx.snapshot/v1","at":"2026-11-20T12:00:00Z","providers":[{"provider":"local","sandboxes":[` +
		`{"id":"customer-7","name":"customer-7","state":"running","task_id":"t-customer-7"},{"id":"other","state":"running"}]}],` +
		`"concluded":{"verdict":"true","listed":2,"stuck":[{"ref":"local/customer-7","cause":"infinite_loop"}],"plan":["local/customer-7"]}}`
	s, err := f.AddSnapshot(t.Context(), "i-1", "diagnose.json", []byte(look), Event{At: at, Actor: alice(), Verb: "diagnose"})
	require.NoError(t, err)
	return f, s
}

// TestNoPatternDamagesARecord: keys, closed lists, times and paths stay, whatever a pattern matches.
func TestNoPatternDamagesARecord(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{`.+`, `[a-z]+`, `(a+)+`, `2026`, `[0-9]+`, `snapshots`, `"|\\`, `sbx`, `[^/]`, `i-1`} {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			f, _ := full(t)
			before := read(t, f, "i-1")
			_, err := f.Redact(t.Context(), "i-1", matcher(pattern), redactEvent())
			require.NoError(t, err)
			after := read(t, f, "i-1")
			require.Empty(t, after.Problem)
			assert.Equal(t, Open, after.State)
			for i, was := range before.Events {
				is := after.Events[i]
				assert.Equal(t, []any{was.Kind, was.At, was.Verb, was.Question, was.Milestone}, []any{is.Kind, is.At, is.Verb, is.Question, is.Milestone})
			}
			step := after.Events[3].Step
			assert.Equal(t, []string{"b-1", "sandbox-stuck", "look", "manual", "done", "true"}, []string{step.Run, step.Runbook, step.ID, step.Kind, step.State, step.Verdict})
			snapshots := after.Snapshots()
			require.Len(t, snapshots, 1)
			content, err := f.ReadSnapshot(t.Context(), "i-1", snapshots[0])
			require.NoError(t, err, "the snapshot is there")
			var look struct {
				Schema    string `json:"schema"`
				Providers []struct {
					Sandboxes []struct {
						State string `json:"state"`
					} `json:"sandboxes"`
				} `json:"providers"`
			}
			require.NoError(t, json.Unmarshal(content, &look))
			assert.Equal(t, "sbx.snapshot/v1", look.Schema)
			assert.Equal(t, "running", look.Providers[0].Sandboxes[1].State)
			again, err := f.Redact(t.Context(), "i-1", matcher(pattern), redactEvent())
			require.NoError(t, err)
			assert.Zero(t, again.Places, "the second finds nothing")
		})
	}
}

// TestARefHasOneAlias in all events and snapshots, so that a look can be judged again.
func TestARefHasOneAlias(t *testing.T) {
	t.Parallel()
	f, _ := full(t)
	_, err := f.Redact(t.Context(), "i-1", matcher(`customer-[0-9]+`), redactEvent())
	require.NoError(t, err)
	assertNowhere(t, f.Dir, "customer-7")
	i := read(t, f, "i-1")
	ref := i.Events[2].Acts[0].Ref
	assert.Regexp(t, `^local/redacted-[a-z2-7]{8}$`, ref)
	content, err := f.ReadSnapshot(t.Context(), "i-1", i.Snapshots()[0])
	require.NoError(t, err)
	text := string(content)
	assert.Contains(t, text, `"id":"`+strings.TrimPrefix(ref, "local/")+`"`)
	assert.Contains(t, text, `"stuck":[{"ref":"`+ref+`","cause":"infinite_loop"}],"plan":["`+ref+`"]`)
	assert.Regexp(t, `"task_id":"t-redacted-[a-z2-7]{8}"`, text)
	assert.Contains(t, text, `"id":"other"`)
}

// TestAFileThatNobodyUnderstandsStays: an entry whose path was damaged does not say which file is its.
func TestAFileThatNobodyUnderstandsStays(t *testing.T) {
	t.Parallel()
	f, s := full(t)
	_, err := f.AddSnapshot(t.Context(), "i-1", "more.json", []byte(`{"a": "s3cr3t"}`), Event{At: noon(), Actor: alice()})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.path("i-1", snapshotFolder, "README"), []byte("of a person"), 0o600))
	log, err := journal.Read(f.disk("i-1"), "i-1")
	require.NoError(t, err)
	entry := &log.Entries[4]
	entry.Data = json.RawMessage(strings.Replace(string(entry.Data), `"snapshots/`, `"[redacted]/`, 1))
	text, err := journal.Rechain("i-1", log.Entries)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(journalOf(f, "i-1"), text, 0o600))

	_, err = f.Redact(t.Context(), "i-1", matcher("s3cr3t"), redactEvent())
	require.NoError(t, err)
	assert.FileExists(t, f.path("i-1", s.File))
	assert.FileExists(t, f.path("i-1", snapshotFolder, "README"))
	assertNowhere(t, f.Dir, "s3cr3t")
}

// TestARedactionThatWouldDamageIsRefused, and leaves journal and snapshots as they were.
func TestARedactionThatWouldDamageIsRefused(t *testing.T) {
	t.Parallel()
	f, s := full(t)
	before, err := os.ReadFile(journalOf(f, "i-1"))
	require.NoError(t, err)
	nothing := func(text string) (string, int) {
		return strings.ReplaceAll(text, "customer-7", ""), strings.Count(text, "customer-7")
	}
	_, err = f.Redact(t.Context(), "i-1", nothing, redactEvent())
	require.ErrorContains(t, err, "nothing was changed")
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	after, err := os.ReadFile(journalOf(f, "i-1"))
	require.NoError(t, err)
	assert.Equal(t, before, after)
	files, err := os.ReadDir(f.path("i-1", snapshotFolder))
	require.NoError(t, err)
	require.Len(t, files, 1)
	assert.Equal(t, files[0].Name(), strings.TrimPrefix(s.File, snapshotFolder+"/"))
}

// TestANewJournalIsReadBack before it replaces the old one.
func TestANewJournalIsReadBack(t *testing.T) {
	t.Parallel()
	f, _ := full(t)
	old := read(t, f, "i-1")
	log, err := journal.Read(f.disk("i-1"), "i-1")
	require.NoError(t, err)
	r := &redaction{folder: f, id: "i-1"}
	for name, entries := range map[string][]journal.Entry{
		"lose events":   log.Entries,
		"other snap":    append(append([]journal.Entry{}, log.Entries[:4]...), log.Entries[1], log.Entries[1]),
		"cannot be rea": append(append([]journal.Entry{}, log.Entries...), journal.Entry{At: noon(), Kind: "note", Data: json.RawMessage(`{"at":"[redacted]"}`)}),
	} {
		text, err := journal.Rechain("i-1", entries)
		require.NoError(t, err)
		err = r.readBack(t.Context(), old, text)
		require.ErrorContains(t, err, name)
		assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	}
}
