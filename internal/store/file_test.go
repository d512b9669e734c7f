package store

import (
	"context"
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

// at opens a SQLite store in a folder, with a shorter timeout than the product's.
func at(t *testing.T, dir string) *Database {
	t.Helper()
	d, err := New(Options{StateDir: dir})
	require.NoError(t, err)
	f, ok := d.engine.(*sqliteEngine)
	require.True(t, ok)
	f.busy = 60 * time.Millisecond
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

// refuses checks an error's kind, that it names the file, and its hint.
func refuses(t *testing.T, err error, kind fault.Kind, texts ...string) {
	t.Helper()
	require.Error(t, err)
	assert.Equal(t, kind, fault.KindOf(err), err)
	assert.NotEmpty(t, fault.HintOf(err), err)
	assert.NotContains(t, err.Error(), "\n")
	for _, text := range append(texts, "store ", FileName) {
		assert.Contains(t, err.Error(), text)
	}
}

func TestNothingIsTouchedBeforeTheFirstCall(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	d := at(t, dir)
	assert.NoDirExists(t, dir)
	require.NoError(t, d.Ready(t.Context()))
	assert.FileExists(t, filepath.Join(dir, FileName))
	require.NoError(t, d.Ready(t.Context()), "open already")
}

func TestFileIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	if os.PathSeparator != '/' {
		t.Skip("modes are Unix's")
	}
	dir := filepath.Join(t.TempDir(), "a", "state")
	d := at(t, dir)
	require.NoError(t, d.PutRun(t.Context(), Run{ID: "r"}))
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Dir(dir): 0o700, d.String(): 0o600, d.String() + "-wal": 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode().Perm(), path)
	}
	require.NoError(t, d.Close())
	require.NoError(t, os.Chmod(d.String(), 0o644))
	require.NoError(t, at(t, dir).Ready(t.Context()))
	info, err := os.Stat(d.String())
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), "tightened")
}

func TestPragmas(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), Options{StateDir: filepath.Join(t.TempDir(), "with space & ?odd=name#%41")})
	require.NoError(t, err)
	defer d.Close() //nolint:errcheck // the test is over
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "2"} {
		var got string
		require.NoError(t, d.db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
		assert.Equal(t, want, got, pragma)
	}
	assert.FileExists(t, d.String())
}

func TestNetworkFileSystemIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := Open(t.Context(), Options{StateDir: dir, Networked: func(asked string) string {
		assert.Equal(t, dir, asked)
		return "nfs"
	}})
	refuses(t, err, fault.KindUsage, "network file system (nfs)")
	assert.Contains(t, fault.HintOf(err), "store.url")
	assert.NoFileExists(t, filepath.Join(dir, FileName))
	assert.Empty(t, networkFileSystem(dir), "tests run on a local disk")
	assert.Empty(t, networkFileSystem(filepath.Join(dir, "nowhere")))
}

func TestBrokenFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("not a database. ", 500)), 0o600))
	d := at(t, dir)
	refuses(t, d.Ready(t.Context()), fault.KindUnknown, "broken")
	require.NoError(t, os.Remove(path))
	require.NoError(t, d.Ready(t.Context()), "the next call tries again")
	for i := range 200 {
		require.NoError(t, d.PutRecord(t.Context(), Record{Provider: "p", ID: strings.Repeat("x", i+1)}))
	}
	require.NoError(t, d.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := 4096; i < len(whole); i++ { // the head stays valid
		whole[i] = 0xa5
	}
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	_, err = at(t, dir).Records(t.Context(), "")
	refuses(t, err, fault.KindUnknown, "broken")
	assert.Contains(t, fault.HintOf(err), "-wal")
}

func TestUnusablePlace(t *testing.T) {
	t.Parallel()
	inTheWay := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(inTheWay, nil, 0o600))
	refuses(t, at(t, filepath.Join(inTheWay, "state")).Ready(t.Context()), fault.KindUsage)
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, FileName), 0o700))
	refuses(t, at(t, folder).Ready(t.Context()), fault.KindUsage)
	if os.Getuid() == 0 {
		return // root may read and write everything
	}
	locked := t.TempDir()
	require.NoError(t, os.Chmod(locked, 0o500))
	refuses(t, at(t, locked).Ready(t.Context()), fault.KindUsage, "denied")
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	d := at(t, t.TempDir())
	require.NoError(t, d.Ready(t.Context()))
	_, err := d.db.ExecContext(t.Context(), "PRAGMA max_page_count = 1")
	require.NoError(t, err)
	err = d.PutRecord(t.Context(), Record{Provider: "p", ID: "i", Reason: strings.Repeat("long ", 10_000)})
	refuses(t, err, fault.KindUnavailable, "no space")
	records, err := d.Records(t.Context(), "")
	require.NoError(t, err, "reading goes on")
	assert.Empty(t, records)
}

func TestLockedBeyondPatience(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other, d := at(t, dir), at(t, dir)
	require.NoError(t, d.Ready(t.Context()))
	err := other.writeTx(t.Context(), "hold", func(context.Context, *sql.Tx) error {
		refuses(t, d.PutRun(t.Context(), Run{ID: "r"}), fault.KindLocked, "another process", "60ms")
		_, err := d.Runs(t.Context(), 0)
		assert.NoError(t, err, "readers do not wait for a writer")
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, d.PutRun(t.Context(), Run{ID: "r"}))
}

func TestSchemaOfANewerSbxIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := at(t, dir)
	require.NoError(t, d.PutRun(t.Context(), Run{ID: "r"}))
	_, err := d.execStatement(t.Context(), "grow", `INSERT INTO sbx_schema (version) VALUES ($1)`, schemaVersion+1)
	require.NoError(t, err)
	older := at(t, dir)
	refuses(t, older.PutRun(t.Context(), Run{ID: "r2"}), fault.KindRefused, "schema is 5", "supports 4")
	_, err = older.Runs(t.Context(), 0)
	refuses(t, err, fault.KindRefused)
	list, err := d.Runs(t.Context(), 0)
	require.NoError(t, err)
	assert.Len(t, list, 1)
}

func TestJudgementOfFileErrors(t *testing.T) {
	t.Parallel()
	f := newSQLite(Options{StateDir: "/state"})
	for err, want := range map[error]fault.Kind{
		fs.ErrPermission: fault.KindUsage, syscall.EROFS: fault.KindUsage, syscall.ENOSPC: fault.KindUnavailable,
		syscall.EMFILE: fault.KindUnavailable, fs.ErrInvalid: fault.KindUnknown,
	} {
		got := f.classifyError(err)
		assert.Equal(t, want, got.Kind, err)
		assert.Equal(t, want != fault.KindUnknown, got.Hint != "", err)
	}
}

func TestOwnLimitAndTheCallersAreToldApart(t *testing.T) {
	t.Parallel()
	d := at(t, t.TempDir())
	own := d.callError(t.Context(), "read", context.DeadlineExceeded)
	refuses(t, own, fault.KindUnavailable, "no answer within 10s")
	ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	assert.Equal(t, fault.KindTimeout, fault.KindOf(d.Ready(ctx)), "the limit of whoever asked")
}
