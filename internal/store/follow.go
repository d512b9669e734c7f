package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	channel = "sbx_task"

	// lookAnyway is how long a change may stay unseen whose news was lost: a pooler
	// may carry none.
	lookAnyway = 2 * time.Second

	// reconnect is the pause before a lost connection is made again.
	reconnect = 500 * time.Millisecond
)

func (s *server) interval() time.Duration { return s.look }

func (s *server) tell(ctx context.Context, tx *sql.Tx, topic string) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_notify($1, $2)`, channel, topic)
	return err
}

// follow listens on a connection of its own. What goes wrong there is no error: the
// connection is made again, and whoever waits looks at intervals.
func (s *server) follow(ctx context.Context, b *board) {
	for ctx.Err() == nil {
		s.listen(ctx, b)
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

// listen puts news on the board while its connection lasts.
func (s *server) listen(ctx context.Context, b *board) {
	config := s.config.Copy()
	config.OnNotification = func(_ *pgconn.PgConn, news *pgconn.Notification) { b.tell(news.Payload) }
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return
	}
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		conn.Close(late) //nolint:errcheck // it is lost already, or the store is being closed
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channel).ReadAll(); err != nil {
		return
	}
	b.tellAll() // news may have come before
	for conn.WaitForNotification(ctx) == nil {
	}
}
