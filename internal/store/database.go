package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
)

// callTimeout is how long one call waits for the database, including queues and locks.
const callTimeout = 10 * time.Second

// Options configure the store. All but StateDir may be zero.
type Options struct {
	URL       string                  // postgres:// or postgresql://; "" = SQLite in StateDir
	StateDir  string                  // absolute; it is created when missing
	Now       func() time.Time        // the clock of a SQLite store; nil = time.Now
	Notice    func(text string)       // one line for the operator; nil = none
	Networked func(dir string) string // the network file system of a folder, "" = none; nil = asks the kernel
}

// Database is a Store in SQLite or Postgres. It opens at its first call, and may be used
// concurrently.
type Database struct {
	engine engine

	waiters waiters // goroutines of this process that wait for changes of tasks

	mu       sync.Mutex
	db       *sql.DB // nil until the first call
	follower follower
	closed   bool
}

var _ Store = (*Database)(nil)

// engine is the part that differs between the databases.
type engine interface {
	// openDB connects; the database answers when it returns without an error.
	openDB(ctx context.Context) (*sql.DB, error)
	// isFresh reports whether an error means that there are no tables yet.
	isFresh(err error) bool
	dialect
	notifier
	// classifyError gives the driver's error a kind and a hint, without secrets.
	classifyError(err error) *fault.Error
	// String names the place, without secrets.
	String() string
}

// dialect is the SQL that differs between the databases.
type dialect interface {
	// lockMigration excludes every other migration until the transaction ends.
	lockMigration(ctx context.Context, tx *sql.Tx) error
	// retryLocked runs do, which begins a transaction or is one, and repeats it while
	// another process holds the write lock.
	retryLocked(ctx context.Context, do func() error) error
	// lockBudget excludes other reservations of a budget until the transaction ends; later
	// statements see what they committed before.
	lockBudget(ctx context.Context, tx *sql.Tx, budget string) error
	// storeTime is the store's clock.
	storeTime(ctx context.Context, tx *sql.Tx) (time.Time, error)
	// timeExpression is the store's clock as an SQL expression, in microseconds.
	timeExpression() string
	// byteOrder is a column as an SQL expression that is ordered by its bytes.
	byteOrder(column string) string
}

// notifier notifies other processes of changes.
type notifier interface {
	// notifyTopic notifies all processes about a topic when the transaction commits.
	notifyTopic(ctx context.Context, tx *sql.Tx, topic string) error
	// followTopics passes notifications to w until ctx ends.
	followTopics(ctx context.Context, b *waiters)
	// pollInterval is the longest time until a change without a notification is seen.
	pollInterval() time.Duration
}

// New makes a store that opens when it is first used. A URL that is not one of Postgres is
// fault.KindUsage; nothing is accessed yet.
func New(o Options) (*Database, error) {
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.URL == "" {
		return &Database{engine: newSQLite(o)}, nil
	}
	server, err := newPostgres(o.URL)
	if err != nil {
		return nil, fault.Placed(err, "", "store.url")
	}
	return &Database{engine: server}, nil
}

// Ready opens the store unless it is open, for verbs that must not begin without it.
func (d *Database) Ready(ctx context.Context) error {
	_, err := d.openDB(ctx)
	return d.callError(ctx, "open", err)
}

// String names the place of the store, without secrets.
func (d *Database) String() string { return d.engine.String() }

// Close ends all connections; waiting and later calls fail.
func (d *Database) Close() error {
	err := d.closeOnce()
	if d.follower.stop != nil {
		d.follower.stop()
		<-d.follower.done // none starts after the end
	}
	d.waiters.publishAll()
	return err
}

func (d *Database) closeOnce() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.db == nil {
		return nil
	}
	db := d.db
	d.db = nil
	return db.Close()
}

var errClosed = errors.New("it was closed")

// openDB returns the connections. After a failed attempt the next call tries again.
func (d *Database) openDB(ctx context.Context) (*sql.DB, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, fault.New(fault.KindUnknown, "%w", errClosed)
	case d.db != nil:
		return d.db, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	db, err := d.engine.openDB(ctx)
	if err != nil {
		return nil, err
	}
	if err := migrateSchema(ctx, db, d.engine); err != nil {
		db.Close() //nolint:errcheck // the error that matters is on its way
		return nil, err
	}
	d.db = db
	return db, nil
}

// writeTx runs do in one transaction that holds the write lock from its start.
func (d *Database) writeTx(ctx context.Context, op string, do func(ctx context.Context, tx *sql.Tx) error) error {
	return d.withTx(ctx, op, func(ctx context.Context, db *sql.DB) error {
		var tx *sql.Tx
		err := d.engine.retryLocked(ctx, func() (err error) {
			tx, err = db.BeginTx(ctx, nil)
			return err
		})
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // after the commit there is nothing to roll back
		if err := do(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// execStatement runs one statement and returns the number of rows it changed.
func (d *Database) execStatement(ctx context.Context, op, statement string, args ...any) (rows int64, err error) {
	err = d.withTx(ctx, op, func(ctx context.Context, db *sql.DB) error {
		return d.engine.retryLocked(ctx, func() error {
			result, err := db.ExecContext(ctx, statement, args...)
			if err == nil {
				rows, err = result.RowsAffected()
			}
			return err
		})
	})
	return rows, err
}

// queryRows reads all rows, or fails: there is no partial answer.
func (d *Database) queryRows(ctx context.Context, op, statement string, args []any, row func(*sql.Rows) error) error {
	return d.withTx(ctx, op, func(ctx context.Context, db *sql.DB) error {
		var rows *sql.Rows
		err := d.engine.retryLocked(ctx, func() (err error) {
			rows, err = db.QueryContext(ctx, statement, args...)
			return err
		})
		if err != nil {
			return err
		}
		return eachRow(rows, row)
	})
}

// rowType is how the rows of a type are read and sorted: databases order texts by their
// own locale.
type rowType[T any] struct {
	scan    func(rowScanner) (T, error)
	compare func(a, b T) int
}

func (r rowType[T]) queryList(ctx context.Context, d *Database, op, statement string, args ...any) ([]T, error) {
	list := []T{}
	err := d.queryRows(ctx, op, statement, args, func(rows *sql.Rows) error {
		item, err := r.scan(rows)
		list = append(list, item)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, r.compare)
	return list, nil
}

func eachRow(rows *sql.Rows, row func(*sql.Rows) error) error {
	defer rows.Close() //nolint:errcheck // Err has what matters
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (d *Database) withTx(ctx context.Context, op string, do func(context.Context, *sql.DB) error) error {
	db, err := d.openDB(ctx)
	if err != nil {
		return d.callError(ctx, op, err)
	}
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return d.callError(ctx, op, do(limited, db))
}

func (d *Database) callError(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	return storeError(ctx, d.engine, "store "+d.String()+": "+op, err)
}

// storeError explains an error to the operator, with the operation.
func storeError(ctx context.Context, e engine, op string, err error) error {
	var known *fault.Error
	switch {
	case errors.As(err, &known):
		if known.Kind == fault.KindLocked { // the error names the holder of the lease already
			return known
		}
	case ctx.Err() != nil:
		known = fault.New(fault.KindOf(ctx.Err()), "%w", ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		known = fault.New(fault.KindUnavailable, "no answer within %s", callTimeout).WithHint("the database is busy or cannot be reached")
	default:
		known = e.classifyError(err)
	}
	return known.At("", op)
}

// schemaVersion is the version that this binary reads and writes. A version is only ever
// added, as one more step at the end of migrations.
const schemaVersion = 4

const readVersion = `SELECT coalesce(max(version), 0) FROM sbx_schema`

// newerSchemaError refuses a schema that this binary does not know: it could not read some
// data, and other processes would miss what it does not write.
func newerSchemaError(version int64) error {
	if version <= schemaVersion {
		return nil
	}
	return fault.New(fault.KindRefused, "its schema is %d, and this sbx supports %d", version, schemaVersion).
		WithHint("a newer sbx has used it: install that version here too")
}
