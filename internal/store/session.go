package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// connector and session are all that database/sql needs of Postgres here: texts,
// whole numbers and truths, one statement at a time. pgx's own adapter knows every
// type there is, and would be 3 MB of the binary.
type connector struct{ config *pgconn.Config }

var errNotHere = errors.New("the store neither prepares statements nor opens by name")

// Connect is driver.Connector's.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := pgconn.ConnectConfig(ctx, c.config.Copy())
	if err != nil {
		return nil, err
	}
	return &session{conn}, nil
}

// Driver is driver.Connector's.
func (c connector) Driver() driver.Driver { return c }

// Open is driver.Driver's; nothing opens by name.
func (connector) Open(string) (driver.Conn, error) { return nil, errNotHere }

// session is one connection to Postgres.
type session struct{ conn *pgconn.PgConn }

var (
	_ driver.ExecerContext   = (*session)(nil)
	_ driver.QueryerContext  = (*session)(nil)
	_ driver.ConnBeginTx     = (*session)(nil)
	_ driver.SessionResetter = (*session)(nil)
	_ driver.Validator       = (*session)(nil)
)

// goodbye is how long a connection may take to end, or to take something back.
const goodbye = 2 * time.Second

// Prepare is driver.Conn's.
func (*session) Prepare(string) (driver.Stmt, error) { return nil, errNotHere }

// Begin is driver.Conn's; database/sql calls BeginTx.
func (*session) Begin() (driver.Tx, error) { return nil, errNotHere }

// Close is driver.Conn's, which has no context.
func (s *session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye) //nolint:forbidigo // the interface hands none down
	defer cancel()
	return s.conn.Close(ctx)
}

// IsValid is driver.Validator's.
func (s *session) IsValid() bool { return !s.conn.IsClosed() }

// ResetSession is driver.SessionResetter's: a connection that the server has ended
// meanwhile is replaced before anything is asked.
func (s *session) ResetSession(context.Context) error {
	if s.conn.IsClosed() || s.conn.TxStatus() != 'I' {
		return driver.ErrBadConn
	}
	if s.conn.CheckConn() != nil { //nolint:staticcheck // deprecated for a ping, which is a round trip before every call
		return driver.ErrBadConn
	}
	return nil
}

// ExecContext is driver.ExecerContext's.
func (s *session) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	result, err := s.run(ctx, statement, args)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(result.CommandTag.RowsAffected()), nil
}

// QueryContext is driver.QueryerContext's. All rows are there when it returns.
func (s *session) QueryContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	result, err := s.run(ctx, statement, args)
	if err != nil {
		return nil, err
	}
	return &answer{result: result}, nil
}

func (s *session) run(ctx context.Context, statement string, args []driver.NamedValue) (*pgconn.Result, error) {
	values := make([][]byte, len(args))
	for i, arg := range args {
		text, err := written(arg.Value)
		if err != nil {
			return nil, err
		}
		values[i] = []byte(text)
	}
	result := s.conn.ExecParams(ctx, statement, values, nil, nil, nil).Read()
	if result.Err != nil && pgconn.SafeToRetry(result.Err) && ctx.Err() == nil {
		return nil, driver.ErrBadConn // nothing was sent: database/sql takes another connection
	}
	return result, result.Err
}

// written is a parameter as the server reads it; the server knows its type.
func written(value driver.Value) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", fmt.Errorf("no parameter can be a %T", value)
}

// BeginTx is driver.ConnBeginTx's. Whatever a server has as its default, a statement
// after a lock must see what was committed before the lock was had.
func (s *session) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	begin := "BEGIN ISOLATION LEVEL READ COMMITTED"
	if o.ReadOnly {
		begin += " READ ONLY"
	}
	if _, err := s.run(ctx, begin, nil); err != nil {
		return nil, err
	}
	return transaction{
		commit: func() error { return s.end(ctx, "COMMIT") },
		rollback: func() error { // also after the end of its context: the connection goes on
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
			defer cancel()
			return s.end(late, "ROLLBACK")
		},
	}, nil
}

// end ends a transaction by a word. The server answers COMMIT with ROLLBACK where
// a statement had failed.
func (s *session) end(ctx context.Context, word string) error {
	result, err := s.run(ctx, word, nil)
	if err == nil && result.CommandTag.String() != word {
		return fmt.Errorf("the server answered %s with %s", word, result.CommandTag)
	}
	return err
}

// transaction is the two ways to end one.
type transaction struct{ commit, rollback func() error }

// Commit is driver.Tx's.
func (t transaction) Commit() error { return t.commit() }

// Rollback is driver.Tx's.
func (t transaction) Rollback() error { return t.rollback() }

// answer is the rows of a query.
type answer struct {
	result *pgconn.Result
	next   int
}

// Columns is driver.Rows'.
func (a *answer) Columns() []string {
	names := make([]string, len(a.result.FieldDescriptions))
	for i, field := range a.result.FieldDescriptions {
		names[i] = field.Name
	}
	return names
}

// Close is driver.Rows'.
func (*answer) Close() error { return nil }

// Next is driver.Rows'. database/sql makes of a text what it is scanned into.
func (a *answer) Next(into []driver.Value) error {
	if a.next >= len(a.result.Rows) {
		return io.EOF
	}
	for i, value := range a.result.Rows[a.next] {
		into[i] = nil
		if value != nil {
			into[i] = string(value)
		}
	}
	a.next++
	return nil
}
