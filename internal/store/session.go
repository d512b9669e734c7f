package store

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"sbx/internal/fault"
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

// topicOf is the notification topic of a task: a hash, because an id may exceed the
// server's limit and contain any character.
func topicOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// AwaitTask implements TaskStore. A change by this process wakes it at once, and Postgres
// notifies of changes by others; besides, it polls.
func (d *Database) AwaitTask(ctx context.Context, id string, version int64) (Task, error) {
	d.startFollowing(ctx)
	heard, leave := d.waiters.subscribe(topicOf(storableText(id)))
	defer leave()
	for {
		t, err := d.Task(ctx, id)
		switch kind := fault.KindOf(err); {
		case err == nil && t.Version != version:
			return t, nil
		case err != nil && kind != fault.KindUnavailable && kind != fault.KindLocked:
			return Task{}, err
		}
		select {
		case <-ctx.Done():
			return Task{}, d.callError(ctx, "await task "+storableText(id), ctx.Err())
		case <-heard:
		case <-time.After(d.engine.pollInterval()):
		}
	}
}

// follower receives notifications of other processes while the store is open.
type follower struct {
	stop context.CancelFunc // nil = it never started
	done chan struct{}
}

// startFollowing starts to listen to the engine, once; Close ends it.
func (d *Database) startFollowing(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.follower.stop != nil {
		return
	}
	ctx, d.follower.stop = context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	d.follower.done = done
	go func() {
		defer close(done)
		d.engine.followTopics(ctx, &d.waiters)
	}()
}

// waiters are the goroutines of one process that wait for a change of a task. A
// notification may come without a change, and a change of another process without one: a
// woken goroutine reads again.
type waiters struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]bool // by topic
}

// subscribe returns a channel that receives a value after each notification of the topic,
// until leave is called.
func (b *waiters) subscribe(topic string) (heard <-chan struct{}, leave func()) {
	news := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[string]map[chan struct{}]bool{}
	}
	if b.waiting[topic] == nil {
		b.waiting[topic] = map[chan struct{}]bool{}
	}
	b.waiting[topic][news] = true
	return news, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiting[topic], news)
		if len(b.waiting[topic]) == 0 {
			delete(b.waiting, topic)
		}
	}
}

// publishTopic wakes the waiters for a topic, without blocking.
func (b *waiters) publishTopic(topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wakeWaiters(b.waiting[topic])
}

// publishAll wakes all: notifications may have been missed.
func (b *waiters) publishAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, waiting := range b.waiting {
		wakeWaiters(waiting)
	}
}

func wakeWaiters(waiting map[chan struct{}]bool) {
	for news := range waiting {
		select {
		case news <- struct{}{}:
		default: // an earlier notification is still unread
		}
	}
}
