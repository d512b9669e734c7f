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
	"sbx/internal/poll"
)

const (
	// FileName is the SQLite file in the state directory. Names of profiles have no dot, so
	// that it is never the folder of one.
	FileName = "sbx.db"

	busyTimeout = 5 * time.Second

	// While many processes wait for the lock, SQLite alone checks it every 100 ms, which
	// never succeeds beside a series of writers. So SQLite waits for oneTry, and between
	// two tries there is a pause that grows to longestPause. With shorter pauses 64
	// processes would be busy with tries alone.
	oneTry       = 2 * time.Millisecond
	longestPause = 40 * time.Millisecond

	// lookAgain is how long a change of another process may stay unseen: there are no
	// notifications, and a read takes some 30 microseconds.
	lookAgain = 500 * time.Millisecond
)

// sqliteEngine is the engine of a SQLite store. Its clock is the host's, which all
// processes with access to the file share.
type sqliteEngine struct {
	path      string
	busy      time.Duration
	look      time.Duration
	clock     func() time.Time
	notice    func(string)
	networked func(dir string) string
}

func newSQLite(o Options) *sqliteEngine {
	f := &sqliteEngine{
		path: filepath.Join(o.StateDir, FileName), busy: busyTimeout, look: lookAgain,
		clock: o.Now, notice: o.Notice, networked: o.Networked,
	}
	if f.networked == nil {
		f.networked = networkFileSystem
	}
	return f
}

func (f *sqliteEngine) String() string { return f.path }

func (f *sqliteEngine) storeTime(context.Context, *sql.Tx) (time.Time, error) {
	return storedTime(f.clock()), nil
}

// lockMigration does nothing: every write transaction begins with the file's lock.
func (f *sqliteEngine) lockMigration(context.Context, *sql.Tx) error { return nil }

// lockBudget does nothing, for the same reason.
func (f *sqliteEngine) lockBudget(context.Context, *sql.Tx, string) error { return nil }

func (f *sqliteEngine) timeExpression() string { return strconv.FormatInt(toMicros(f.clock()), 10) }

// byteOrder is the column: SQLite has no other order.
func (f *sqliteEngine) byteOrder(column string) string { return column }

// notifyTopic and followTopics do nothing: SQLite has no notifications.
func (f *sqliteEngine) notifyTopic(context.Context, *sql.Tx, string) error { return nil }
func (f *sqliteEngine) followTopics(context.Context, *waiters)             {}
func (f *sqliteEngine) pollInterval() time.Duration                        { return f.look }

func (f *sqliteEngine) isFresh(err error) bool {
	return resultCode(err) == sqlite3.SQLITE_ERROR && strings.Contains(err.Error(), "no such table")
}

// openDB prepares folder and file and opens one connection: the goroutines of this process
// queue for it in order, and only processes compete for the file's lock.
func (f *sqliteEngine) openDB(ctx context.Context) (*sql.DB, error) {
	if err := f.prepareFile(); err != nil {
		return nil, err
	}
	connector, err := sqlite.NewConnector(f.dataSource())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	// When many processes switch a new file to WAL at once, SQLite refuses some without the
	// busy timeout, because they could deadlock; they try again.
	if err := f.retryLocked(ctx, func() error { return db.PingContext(ctx) }); err != nil {
		db.Close() //nolint:errcheck // the error that matters is on its way
		return nil, err
	}
	return db, nil
}

func (f *sqliteEngine) retryLocked(ctx context.Context, do func() error) error {
	deadline, pauses := time.Now().Add(f.busy), poll.NewBackoff(4*time.Millisecond, longestPause)
	for {
		err := do()
		if c := resultCode(err); c != sqlite3.SQLITE_BUSY && c != sqlite3.SQLITE_LOCKED || time.Now().After(deadline) {
			return err
		}
		pause := pauses.Next()
		if poll.Sleep(ctx, pause/2+rand.N(pause/2)) != nil { //nolint:gosec // a spread of pauses is no secret
			return ctx.Err()
		}
	}
}

// dataSource asks for write-ahead logging, a sync at every commit, and write transactions
// that take the lock when they begin: one that takes it later can fail without any wait.
func (f *sqliteEngine) dataSource() string {
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

// prepareFile creates folder and file, accessible by their owner only. It refuses a network
// file system, whose locks do not work, so that two hosts would write at once.
func (f *sqliteEngine) prepareFile() error {
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
		return f.createFile()
	case err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/':
		if err := os.Chmod(f.path, 0o600); err != nil {
			f.notice(f.path + " can be read by others, and its mode cannot be changed: " + err.Error())
		}
	}
	return err
}

// createFile creates the file with its mode, and never opens an existing one: closing it
// would release the locks that SQLite holds on it in this process.
func (f *sqliteEngine) createFile() error {
	made, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return made.Close()
}

// resultCode is SQLite's primary result code in an error; 0 = the error is not SQLite's.
func resultCode(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// classifyError classifies the errors of SQLite and of the file system below it.
func (f *sqliteEngine) classifyError(err error) *fault.Error {
	const elsewhere = ", or name another folder with SBX_STATE_DIR"
	switch c := resultCode(err); {
	case c == sqlite3.SQLITE_BUSY, c == sqlite3.SQLITE_LOCKED, c == sqlite3.SQLITE_PROTOCOL:
		return fault.New(fault.KindLocked, "another process has kept it locked for %s", f.busy).
			WithHint("`fuser %s` names the process; try again when it is done", f.path)
	case c == sqlite3.SQLITE_CORRUPT, c == sqlite3.SQLITE_NOTADB:
		return fault.New(fault.KindUnknown, "the file is broken: %w", err).
			WithHint("move it away together with its -wal and -shm; sbx begins a new one, without the leases and the history of the old")
	case c == sqlite3.SQLITE_FULL, errors.Is(err, syscall.ENOSPC):
		return fault.New(fault.KindUnavailable, "no space is left: %w", err).WithHint("free space under %s%s", filepath.Dir(f.path), elsewhere)
	case c == sqlite3.SQLITE_IOERR:
		return fault.New(fault.KindUnavailable, "%w", err).WithHint("check the space under %s and its disk; `dmesg` shows more", filepath.Dir(f.path))
	case c == sqlite3.SQLITE_CANTOPEN, c == sqlite3.SQLITE_READONLY, c == sqlite3.SQLITE_PERM, c == sqlite3.SQLITE_AUTH,
		errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.EROFS):
		return fault.Usage("%w", err).WithHint("make %s and its folder writable for you%s", f.path, elsewhere)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fault.New(fault.KindUnavailable, "%w", err).WithHint("raise the limit of open files (`ulimit -n` shows it)")
	}
	return fault.New(fault.KindUnknown, "%w", err)
}
