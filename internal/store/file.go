package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"sbx/internal/fault"
)

const (
	// FileName is the SQLite file in the state directory. A profile's name has no
	// dot, so that no profile's folder is ever in its way.
	FileName = "sbx.db"

	busyTimeout = 5 * time.Second

	// Of many who wait for the lock, SQLite alone lets each look every 100 ms: writers
	// that come one after the other would never let it in. It waits for oneTry, and
	// between two tries there is a pause that grows to longestPause. Shorter ones
	// would have 64 processes do nothing but look.
	oneTry       = 2 * time.Millisecond
	longestPause = 40 * time.Millisecond

	// lookAgain is how long a change of another process may stay unseen: nobody tells
	// of it, and a look costs some 30 microseconds.
	lookAgain = 500 * time.Millisecond
)

// file is the engine of a SQLite store. Its clock is the host's, which is the
// clock of everybody who can reach the file.
type file struct {
	path      string
	busy      time.Duration
	look      time.Duration
	clock     func() time.Time
	notice    func(string)
	networked func(dir string) string
}

func newFile(o Options) *file {
	f := &file{
		path: filepath.Join(o.StateDir, FileName), busy: busyTimeout, look: lookAgain,
		clock: o.Now, notice: o.Notice, networked: o.Networked,
	}
	if f.networked == nil {
		f.networked = networkFileSystem
	}
	return f
}

func (f *file) String() string { return f.path }

func (f *file) now(context.Context, *sql.Tx) (time.Time, error) { return kept(f.clock()), nil }

// alone has nothing to do: every write transaction begins with the file's lock.
func (f *file) alone(context.Context, *sql.Tx) error { return nil }

// reserve has nothing to do either, for the same reason.
func (f *file) reserve(context.Context, *sql.Tx, string) error { return nil }

func (f *file) stamp() string { return strconv.FormatInt(micros(f.clock()), 10) }

// bytewise has nothing to say: SQLite knows no other order.
func (f *file) bytewise(column string) string { return column }

// tell and follow have nobody to ask: no process tells another one.
func (f *file) tell(context.Context, *sql.Tx, string) error { return nil }
func (f *file) follow(context.Context, *board)              {}
func (f *file) interval() time.Duration                     { return f.look }

func (f *file) fresh(err error) bool {
	return code(err) == sqlite3.SQLITE_ERROR && strings.Contains(err.Error(), "no such table")
}

// open prepares folder and file and opens one connection: the goroutines of this
// process queue for it in the order in which they come, and only processes meet
// at the file's lock.
func (f *file) open(ctx context.Context) (*sql.DB, error) {
	if err := f.prepare(); err != nil {
		return nil, err
	}
	connector, err := sqlite.NewConnector(f.dsn())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	if err := f.greet(ctx, db); err != nil {
		db.Close() //nolint:errcheck // the error that matters is on its way
		return nil, err
	}
	return db, nil
}

// greet makes the first connection. Of many processes that turn a fresh file to
// WAL at once, SQLite sends some away without the busy timeout, because they
// could wait for each other; they come again.
func (f *file) greet(ctx context.Context, db *sql.DB) error {
	return f.patiently(ctx, func() error { return db.PingContext(ctx) })
}

func (f *file) patiently(ctx context.Context, do func() error) error {
	deadline, pause := time.Now().Add(f.busy), 4*time.Millisecond
	for {
		err := do()
		if c := code(err); c != sqlite3.SQLITE_BUSY && c != sqlite3.SQLITE_LOCKED || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause/2)): //nolint:gosec // spread, not secret
			pause = min(2*pause, longestPause)
		}
	}
}

// dsn asks for write-ahead logging, a sync at every commit, and write
// transactions that take the lock when they begin: one that takes it later can
// fail halfway without any wait.
func (f *file) dsn() string {
	path := filepath.ToSlash(f.path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // file:///C:/...
	}
	query := url.Values{
		"_busy_timeout": {strconv.FormatInt(min(f.busy, oneTry).Milliseconds(), 10)},
		"_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_txlock": {"immediate"},
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// prepare makes folder and file for their owner alone, and refuses a network file
// system: its locks do not hold there, and two hosts would write at once.
func (f *file) prepare() error {
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if name := f.networked(dir); name != "" {
		return fault.Usage("%s is on a network file system (%s), where the locks of SQLite do not hold", dir, name).
			WithHint("share a store by store.url (SBX_STORE_URL=postgres://...), or name a local folder with SBX_STATE_DIR")
	}
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.create()
	case err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/':
		if err := os.Chmod(f.path, 0o600); err != nil {
			f.notice(f.path + " can be read by others, and its mode cannot be changed: " + err.Error())
		}
	}
	return err
}

// create makes the file with its mode, and never opens one that is there: closing
// it again would drop the locks that SQLite has on it in this process.
func (f *file) create() error {
	made, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return made.Close()
}

// code is SQLite's primary result code in an error; 0 = it is not SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// judge sorts the errors of SQLite and of the file system below it.
func (f *file) judge(err error) *fault.Error {
	const elsewhere = ", or name another folder with SBX_STATE_DIR"
	switch c := code(err); {
	case c == sqlite3.SQLITE_BUSY, c == sqlite3.SQLITE_LOCKED, c == sqlite3.SQLITE_PROTOCOL:
		return fault.New(fault.KindLocked, "another process has kept it locked for %s", f.busy).
			WithHint("`fuser %s` names the process; try again when it is done", f.path)
	case c == sqlite3.SQLITE_CORRUPT, c == sqlite3.SQLITE_NOTADB:
		return fault.New(fault.KindUnknown, "the file is broken: %w", err).
			WithHint("move it away together with its -wal and -shm; sbx begins a new one, without the leases and the history of the old")
	case c == sqlite3.SQLITE_FULL, errors.Is(err, syscall.ENOSPC):
		return fault.New(fault.KindUnavailable, "no space is left: %w", err).WithHint("free space under %s%s", filepath.Dir(f.path), elsewhere)
	case c == sqlite3.SQLITE_IOERR:
		return fault.New(fault.KindUnavailable, "%w", err).WithHint("is there space under %s, and is its disk well? `dmesg` says more", filepath.Dir(f.path))
	case c == sqlite3.SQLITE_CANTOPEN, c == sqlite3.SQLITE_READONLY, c == sqlite3.SQLITE_PERM, c == sqlite3.SQLITE_AUTH,
		errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.EROFS):
		return fault.Usage("%w", err).WithHint("make %s and its folder yours to write%s", f.path, elsewhere)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fault.New(fault.KindUnavailable, "%w", err).WithHint("raise the limit of open files: `ulimit -n` shows it")
	}
	return fault.New(fault.KindUnknown, "%w", err)
}
