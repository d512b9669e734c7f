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

// pgConnector and pgSession are the part of database/sql that the store needs of Postgres:
// strings, integers and booleans, one statement at a time. pgx's own adapter knows every
// type, and would add 3 MB to the binary.
type pgConnector struct{ config *pgconn.Config }

var errNotHere = errors.New("the store neither prepares statements nor opens by name")

// Connect implements driver.Connector.
func (c pgConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := pgconn.ConnectConfig(ctx, c.config.Copy())
	if err != nil {
		return nil, err
	}
	return &pgSession{conn}, nil
}

// Driver implements driver.Connector.
func (c pgConnector) Driver() driver.Driver { return c }

// Open implements driver.Driver; nothing opens by name.
func (pgConnector) Open(string) (driver.Conn, error) { return nil, errNotHere }

// pgSession is one connection to Postgres.
type pgSession struct{ conn *pgconn.PgConn }

var (
	_ driver.ExecerContext   = (*pgSession)(nil)
	_ driver.QueryerContext  = (*pgSession)(nil)
	_ driver.ConnBeginTx     = (*pgSession)(nil)
	_ driver.SessionResetter = (*pgSession)(nil)
	_ driver.Validator       = (*pgSession)(nil)
)

// closeTimeout is how long closing a connection or a rollback may take.
const closeTimeout = 2 * time.Second

// Prepare implements driver.Conn.
func (*pgSession) Prepare(string) (driver.Stmt, error) { return nil, errNotHere }

// Begin implements driver.Conn; database/sql calls BeginTx.
func (*pgSession) Begin() (driver.Tx, error) { return nil, errNotHere }

// Close implements driver.Conn, which has no context.
func (s *pgSession) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout) //nolint:forbidigo // the interface hands none down
	defer cancel()
	return s.conn.Close(ctx)
}

// IsValid implements driver.Validator.
func (s *pgSession) IsValid() bool { return !s.conn.IsClosed() }

// ResetSession implements driver.SessionResetter: a connection that the server has ended is
// replaced before it is used.
func (s *pgSession) ResetSession(context.Context) error {
	if s.conn.IsClosed() || s.conn.TxStatus() != 'I' {
		return driver.ErrBadConn
	}
	if s.conn.CheckConn() != nil { //nolint:staticcheck // deprecated for a ping, which is a round trip before every call
		return driver.ErrBadConn
	}
	return nil
}

// ExecContext implements driver.ExecerContext.
func (s *pgSession) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	result, err := s.execParams(ctx, statement, args)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(result.CommandTag.RowsAffected()), nil
}

// QueryContext implements driver.QueryerContext. All rows are read when it returns.
func (s *pgSession) QueryContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	result, err := s.execParams(ctx, statement, args)
	if err != nil {
		return nil, err
	}
	return &pgRows{result: result}, nil
}

func (s *pgSession) execParams(ctx context.Context, statement string, args []driver.NamedValue) (*pgconn.Result, error) {
	values := make([][]byte, len(args))
	for i, arg := range args {
		text, err := encodeParameter(arg.Value)
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

// encodeParameter encodes a parameter as text; the server knows its type.
func encodeParameter(value driver.Value) (string, error) {
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

// BeginTx implements driver.ConnBeginTx. Whatever the server's default, a statement after a
// lock must see what was committed before the lock was taken.
func (s *pgSession) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	begin := "BEGIN ISOLATION LEVEL READ COMMITTED"
	if o.ReadOnly {
		begin += " READ ONLY"
	}
	if _, err := s.execParams(ctx, begin, nil); err != nil {
		return nil, err
	}
	return pgTransaction{
		commit: func() error { return s.endTransaction(ctx, "COMMIT") },
		rollback: func() error { // also after the end of its context: the connection is used again
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
			defer cancel()
			return s.endTransaction(late, "ROLLBACK")
		},
	}, nil
}

// endTransaction ends a transaction by COMMIT or ROLLBACK. The server answers COMMIT with
// ROLLBACK where a statement had failed.
func (s *pgSession) endTransaction(ctx context.Context, word string) error {
	result, err := s.execParams(ctx, word, nil)
	if err == nil && result.CommandTag.String() != word {
		return fmt.Errorf("the server answered %s with %s", word, result.CommandTag)
	}
	return err
}

// pgTransaction implements driver.Tx.
type pgTransaction struct{ commit, rollback func() error }

// Commit implements driver.Tx.
func (t pgTransaction) Commit() error { return t.commit() }

// Rollback implements driver.Tx.
func (t pgTransaction) Rollback() error { return t.rollback() }

// pgRows are the rows of a query.
type pgRows struct {
	result *pgconn.Result
	next   int
}

// Columns implements driver.Rows.
func (a *pgRows) Columns() []string {
	names := make([]string, len(a.result.FieldDescriptions))
	for i, field := range a.result.FieldDescriptions {
		names[i] = field.Name
	}
	return names
}

// Close implements driver.Rows.
func (*pgRows) Close() error { return nil }

// Next implements driver.Rows. database/sql converts the text.
func (a *pgRows) Next(into []driver.Value) error {
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
