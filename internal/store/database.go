package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"sbx/internal/fault"
)

// patience is how long one call waits for the database, queues and locks included.
const patience = 10 * time.Second

// Options say where the store is. The zero value of all but StateDir will do.
type Options struct {
	URL       string                  // postgres:// or postgresql://; "" = SQLite in StateDir
	StateDir  string                  // absolute; made when it is not there
	Now       func() time.Time        // the clock of a SQLite store; nil = time.Now
	Notice    func(text string)       // one line for the operator; nil = nobody listens
	Networked func(dir string) string // which network file system a folder is on, "" = none; nil = asks the kernel
}

// Database is a Store in SQLite or Postgres. It opens at its first call, and is
// used by many goroutines at once.
type Database struct {
	engine engine

	board board // where goroutines of this process wait for news of tasks

	mu       sync.Mutex
	db       *sql.DB // nil until the first call
	follower follower
	closed   bool
}

var _ Store = (*Database)(nil)

// engine is what differs between the databases.
type engine interface {
	// open connects; the database answers when it returns without an error.
	open(ctx context.Context) (*sql.DB, error)
	// fresh says that an error means: there are no tables yet.
	fresh(err error) bool
	dialect
	news
	// judge gives the driver's error a kind and a hint, without secrets.
	judge(err error) *fault.Error
	// String names the place, without secrets.
	String() string
}

// dialect is what the databases spell differently.
type dialect interface {
	// alone keeps every other migration out until the transaction ends.
	alone(ctx context.Context, tx *sql.Tx) error
	// patiently does what begins a transaction or is one, and does it again while
	// somebody else has the right to write.
	patiently(ctx context.Context, do func() error) error
	// reserve keeps everybody else from reserving of a budget until the transaction
	// ends; what they committed before is seen by the statements that follow.
	reserve(ctx context.Context, tx *sql.Tx, budget string) error
	// now is the store's clock.
	now(ctx context.Context, tx *sql.Tx) (time.Time, error)
	// stamp is the store's clock as a word of SQL, in microseconds.
	stamp() string
	// bytewise is a column as SQL orders it by its bytes.
	bytewise(column string) string
}

// news is how processes hear of each other's changes.
type news interface {
	// tell tells all processes of news about a topic when the transaction commits.
	tell(ctx context.Context, tx *sql.Tx, topic string) error
	// follow puts on the board what it is told, until ctx ends.
	follow(ctx context.Context, b *board)
	// interval is how long news may take that nobody tells: then whoever waits looks.
	interval() time.Duration
}

// New makes a store that opens when it is first used. A URL that is none of
// Postgres is fault.KindUsage; nothing is touched yet.
func New(o Options) (*Database, error) {
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.URL == "" {
		return &Database{engine: newFile(o)}, nil
	}
	server, err := newServer(o.URL)
	if err != nil {
		return nil, fault.Placed(err, "", "store.url")
	}
	return &Database{engine: server}, nil
}

// Ready opens the store unless it is open, for verbs that must not begin without.
func (d *Database) Ready(ctx context.Context) error {
	_, err := d.opened(ctx)
	return d.trouble(ctx, "open", err)
}

// String names the place of the store, without secrets.
func (d *Database) String() string { return d.engine.String() }

// Close ends all connections; later calls fail, and so do those that wait.
func (d *Database) Close() error {
	err := d.close()
	d.follower.end() // nothing begins one after the end
	d.board.tellAll()
	return err
}

func (d *Database) close() error {
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

// opened gives the connections. An attempt that failed is made again by the next
// call.
func (d *Database) opened(ctx context.Context) (*sql.DB, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, fault.New(fault.KindUnknown, "%w", errClosed)
	case d.db != nil:
		return d.db, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	db, err := d.engine.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, db, d.engine); err != nil {
		db.Close() //nolint:errcheck // the error that matters is on its way
		return nil, err
	}
	d.db = db
	return db, nil
}

// write runs do in one transaction that holds the right to write from its start.
func (d *Database) write(ctx context.Context, op string, do func(ctx context.Context, tx *sql.Tx) error) error {
	return d.with(ctx, op, func(ctx context.Context, db *sql.DB) error {
		var tx *sql.Tx
		err := d.engine.patiently(ctx, func() (err error) {
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

// exec runs one statement and says how many rows it touched.
func (d *Database) exec(ctx context.Context, op, statement string, args ...any) (rows int64, err error) {
	err = d.with(ctx, op, func(ctx context.Context, db *sql.DB) error {
		return d.engine.patiently(ctx, func() error {
			result, err := db.ExecContext(ctx, statement, args...)
			if err == nil {
				rows, err = result.RowsAffected()
			}
			return err
		})
	})
	return rows, err
}

// query reads all rows, or fails: there is no partial answer.
func (d *Database) query(ctx context.Context, op, statement string, args []any, row func(*sql.Rows) error) error {
	return d.with(ctx, op, func(ctx context.Context, db *sql.DB) error {
		var rows *sql.Rows
		err := d.engine.patiently(ctx, func() (err error) {
			rows, err = db.QueryContext(ctx, statement, args...)
			return err
		})
		if err != nil {
			return err
		}
		return each(rows, row)
	})
}

func each(rows *sql.Rows, row func(*sql.Rows) error) error {
	defer rows.Close() //nolint:errcheck // Err has what matters
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (d *Database) with(ctx context.Context, op string, do func(context.Context, *sql.DB) error) error {
	db, err := d.opened(ctx)
	if err != nil {
		return d.trouble(ctx, op, err)
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.trouble(ctx, op, do(limited, db))
}

func (d *Database) trouble(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	return trouble(ctx, d.engine, "store "+d.String()+": "+op, err)
}

// trouble says what an error means to the operator, and at what it happened.
func trouble(ctx context.Context, e engine, op string, err error) error {
	var known *fault.Error
	switch {
	case errors.As(err, &known):
		if known.Kind == fault.KindLocked { // who holds a lease is said in full already
			return known
		}
	case ctx.Err() != nil:
		known = fault.New(fault.KindOf(ctx.Err()), "%w", ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		known = fault.New(fault.KindUnavailable, "no answer within %s", patience).WithHint("is the database busy or out of reach?")
	default:
		known = e.judge(err)
	}
	return known.At("", op)
}
