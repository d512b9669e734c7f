package ops

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/journal"
	"sbx/internal/runs"
	"sbx/internal/store"
)

// readCounter is a folder of journals that keeps which of them were read.
type readCounter struct {
	journal.Dir

	read []string
}

func (d *readCounter) Open(name string) (io.ReadCloser, error) {
	d.read = append(d.read, name)
	return d.Dir.Open(name)
}

// TestOldJournalsAreNotReadForTheLastSuccess: each cleanup asks for it, and the journals of a large fleet hold megabytes.
func TestOldJournalsAreNotReadForTheLastSuccess(t *testing.T) {
	t.Parallel()
	disk := &readCounter{Dir: journal.Dir(t.TempDir())}
	at := time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)
	for id, succeeded := range map[string][]string{"r-1": {"a", "b"}, "r-2": {"a", "b"}, "r-3": {"a"}, "r-4": {}} {
		w, err := journal.Create(disk, id, func() time.Time { return at.Add(time.Duration(id[2]) * time.Minute) })
		require.NoError(t, err)
		require.NoError(t, w.Append(runs.EntryBegin, runs.Begin{Verb: runs.VerbCleanup}))
		require.NoError(t, w.Append(runs.EntryConclusion, runs.Conclusion{Succeeded: succeeded}))
		require.NoError(t, w.Close())
	}
	e := &Env{Journals: func() (journal.Disk, error) { return disk, nil }, Shared: func() (store.Store, error) { return nil, nil }}
	for _, c := range []struct {
		profiles, runs, read []string
	}{
		{[]string{"a"}, []string{"r-4", "r-3"}, []string{"r-4.jsonl", "r-3.jsonl"}},
		{[]string{"a", "b"}, []string{"r-4", "r-3", "r-2"}, []string{"r-4.jsonl", "r-3.jsonl", "r-2.jsonl"}},
		{[]string{"a", "new"}, []string{"r-4", "r-3", "r-2", "r-1"}, []string{"r-4.jsonl", "r-3.jsonl", "r-2.jsonl", "r-1.jsonl"}},
	} {
		disk.read = nil
		var names []string
		for _, h := range e.Runs().SinceSuccess(t.Context(), runs.VerbCleanup, c.profiles, StatusRuns) {
			names = append(names, h.RunID)
		}
		assert.Equal(t, c.runs, names, c.profiles)
		assert.Equal(t, c.read, disk.read, c.profiles)
	}
}
