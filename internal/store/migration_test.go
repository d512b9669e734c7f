package store_test

import (
	"database/sql"
	_ "embed"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/store"
)

//go:embed testdata/version1.sql
var versionOne string

// olderFile is a folder with a store of the first version.
func olderFile(t *testing.T) store.Options {
	t.Helper()
	dir := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, store.FileName)+"?_journal_mode=WAL")
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), versionOne)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	return store.Options{StateDir: dir}
}

func TestAnOlderFileMovesOn(t *testing.T) {
	t.Parallel()
	movesOn(t, olderFile(t))
}

func TestAnOlderPostgresMovesOn(t *testing.T) {
	t.Parallel()
	movesOn(t, store.Options{URL: foreign(t, versionOne)})
}

// movesOn opens a store of the first version: its rows are there, and it stores tasks.
func movesOn(t *testing.T, o store.Options) {
	t.Helper()
	d := opened(t, o)
	lease, err := d.Acquire(t.Context(), "old", "you", 1e9)
	require.NoError(t, err)
	assert.EqualValues(t, 42, lease.Fence)
	seen, err := d.SeenCounts(t.Context(), "old")
	require.NoError(t, err)
	assert.Equal(t, 3, seen["prod/a"].Count)
	records, err := d.Records(t.Context(), "old")
	require.NoError(t, err)
	require.Len(t, records, 1)
	assert.Equal(t, "t-1", records[0].TaskID)
	runs, err := d.Runs(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	assert.Equal(t, map[string]int{"verified": 3}, runs[0].Counts)
	_, added, err := d.AddTask(t.Context(), store.Task{ID: "t"})
	require.NoError(t, err)
	assert.True(t, added)
	again := opened(t, o)
	list, err := again.Tasks(t.Context(), store.TaskQuery{})
	require.NoError(t, err)
	assert.Len(t, list, 1)
}
