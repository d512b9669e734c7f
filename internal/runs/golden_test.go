package runs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/journal"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// shown is a row of `sbx audit -o json`, as the program that wrote the journals showed it.
type shown struct {
	At      time.Time       `json:"at"`
	Who     string          `json:"actor"`
	Host    string          `json:"host"`
	Verb    string          `json:"verb"`
	Action  string          `json:"action"`
	Ref     string          `json:"ref"`
	Name    string          `json:"name"`
	TaskID  string          `json:"task_id"`
	Outcome sandbox.Outcome `json:"outcome"`
	Reason  string          `json:"reason"`
	Run     string          `json:"run_id"`
	Detail  string          `json:"detail"`
}

// listed is a row of `sbx cleanup runs -o json` of that program.
type listed struct {
	Run      string         `json:"run_id"`
	Selected int            `json:"selected"`
	Counts   map[string]int `json:"counts"`
	ExitCode int            `json:"exit_code"`
	Open     bool           `json:"resumable"`
}

func readItems[T any](t *testing.T, path string) []T {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var doc struct {
		Items []T `json:"items"`
	}
	require.NoError(t, json.Unmarshal(text, &doc))
	require.NotEmpty(t, doc.Items)
	return doc.Items
}

// TestJournalsOfEarlierProgramsAreRead: what three earlier programs wrote of the same runs (an end by name, a
// cleanup, one that a limit refused, a task, a reconciliation) is listed and audited as they did.
func TestJournalsOfEarlierProgramsAreRead(t *testing.T) {
	t.Parallel()
	for _, day := range []string{"2026-11-23", "2026-11-27", "2026-11-29"} {
		dir := filepath.Join("testdata", day)
		acts := map[string]shown{}
		for _, folder := range []string{"runs", "endings"} {
			disk := journal.Dir(filepath.Join(dir, folder))
			names, err := journal.Runs(disk)
			require.NoError(t, err)
			require.NotEmpty(t, names)
			for _, run := range names {
				all, log, err := runs.ReadActs(disk, run)
				require.NoError(t, err)
				require.Empty(t, log.Broken)
				for _, a := range all {
					acts[run+" "+a.Ref.String()] = shown{
						At: a.At.UTC(), Who: a.Actor.Who, Host: a.Actor.Host, Verb: a.Verb, Action: a.Action, Ref: a.Ref.String(), Name: a.Name, TaskID: a.TaskID,
						Outcome: a.Outcome, Reason: a.Reason, Run: a.Run, Detail: a.Detail,
					}
				}
			}
		}
		want := map[string]shown{}
		for _, row := range readItems[shown](t, filepath.Join(dir, "audit.json")) {
			want[row.Run+" "+row.Ref] = row
		}
		for key, row := range acts { // the program showed milliseconds
			row.At = want[key].At
			acts[key] = row
		}
		assert.Equal(t, want, acts, day)
		disk := journal.Dir(filepath.Join(dir, "runs"))
		for _, row := range readItems[listed](t, filepath.Join(dir, "runs.json")) {
			h, err := runs.ReadRun(disk, row.Run)
			require.NoError(t, err)
			assert.Empty(t, h.Unreadable, row.Run)
			counts := h.Counts()
			assert.Equal(t, row.Selected, counts.Selected, row.Run)
			for _, o := range sandbox.Outcomes() {
				assert.Equal(t, row.Counts[string(o)], counts.Of(o), "%s %s", row.Run, o)
			}
			assert.Equal(t, []any{row.ExitCode, row.Open}, []any{h.ExitCode(), h.Resumable()}, row.Run)
		}
	}
}

// TestAJournalOfAnEarlierProgramMayEndAnywhere: a run that was killed after any of its lines is read, and goes on
// with what it has not settled.
func TestAJournalOfAnEarlierProgramMayEndAnywhere(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*", "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 19)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		lines := bytes.SplitAfter(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
		for n := 1; n < len(lines); n++ {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), bytes.Join(lines[:n], nil), 0o600))
			h, err := runs.ReadRun(journal.Dir(dir), filepath.Base(file[:len(file)-len(".jsonl")]))
			require.NoError(t, err)
			require.Empty(t, h.Broken, "%s after %d lines", file, n)
			require.Empty(t, h.Unreadable, "%s after %d lines", file, n)
			settled := 0
			for _, i := range h.Begin.Plan.Items {
				if h.Outcome(i.Ref) != sandbox.OutcomeNotAttempted {
					settled++
				}
			}
			if h.Conclusion == nil {
				assert.Len(t, h.Open(), len(h.Begin.Plan.Items)-settled, "%s after %d lines", file, n)
			}
		}
	}
}
