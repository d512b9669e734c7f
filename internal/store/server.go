package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/poll"

	"github.com/jackc/pgx/v5/pgconn"

	"sbx/internal/fault"
	"sbx/internal/store/address"
)

const (
	// migrationLock is the key of the advisory lock under which tables are made.
	migrationLock = 0x73627801

	applicationName = "sbx"
	mostConnections = 4 // of one process: a team shares the server
)

// postgresEngine is the engine of a Postgres store. Its clock is the server's, which is the
// same for all hosts.
type postgresEngine struct {
	config  *pgconn.Config
	place   string
	secrets []string
	look    time.Duration
}

// newPostgres parses the URL, and does not connect. What the URL leaves out comes from the
// sources of psql: the PG* variables, the password file, the service file. A URL that
// cannot be used is fault.KindUsage.
func newPostgres(raw string) (*postgresEngine, error) {
	u, err := address.Parse(raw)
	if err != nil {
		return nil, err
	}
	config, err := pgconn.ParseConfig(raw)
	if err != nil { // its text may contain a secret
		return nil, fault.Usage("the Postgres driver cannot use it").
			WithHint("check port, sslmode and the other parameters; `psql` accepts the same URL")
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = applicationName
	}
	s := &postgresEngine{config: config, secrets: u.Secrets(), look: maxUnseen}
	if config.Password != "" {
		s.secrets = append(s.secrets, config.Password)
	}
	host := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	if strings.HasPrefix(config.Host, "/") || strings.HasPrefix(config.Host, "@") {
		host = config.Host
	}
	s.place = s.scrubSecrets("postgres " + host + "/" + config.Database)
	return s, nil
}

func (s *postgresEngine) String() string { return s.place }

func (s *postgresEngine) scrubSecrets(text string) string { return address.Scrub(text, s.secrets) }

func (s *postgresEngine) openDB(ctx context.Context) (*sql.DB, error) {
	db := sql.OpenDB(pgConnector{s.config})
	db.SetMaxOpenConns(mostConnections)
	db.SetMaxIdleConns(mostConnections)
	if err := db.PingContext(ctx); err != nil {
		db.Close() //nolint:errcheck // the error that matters is on its way
		return nil, err
	}
	return db, nil
}

func (s *postgresEngine) isFresh(err error) bool { return sqlState(err) == "42P01" } // undefined_table

func (s *postgresEngine) lockMigration(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrationLock))
	return err
}

func (s *postgresEngine) retryLocked(_ context.Context, do func() error) error { return do() }

// lockBudget takes an advisory lock, so that the update that follows sees the sum with
// everything committed under it.
func (s *postgresEngine) lockBudget(ctx context.Context, tx *sql.Tx, budget string) error {
	sum := sha256.Sum256([]byte("budget " + budget))
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(binary.BigEndian.Uint64(sum[:])))
	return err
}

// timeExpression is the same in every part of a statement.
func (s *postgresEngine) timeExpression() string {
	return `(extract(epoch FROM statement_timestamp()) * 1000000)::bigint`
}

func (s *postgresEngine) byteOrder(column string) string { return column + ` COLLATE "C"` }

func (s *postgresEngine) storeTime(ctx context.Context, tx *sql.Tx) (time.Time, error) {
	var us int64
	err := tx.QueryRowContext(ctx, `SELECT `+s.timeExpression()).Scan(&us)
	return fromMicros(us), err
}

// sqlState is the server's code for an error; "" = the error is not the server's.
func sqlState(err error) string {
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		return ""
	}
	return said.Code
}

// classifyError classifies the server's errors by their code, and distinguishes a server
// that cannot be reached from an answer that cannot be read. The original is not wrapped,
// because its text is not controlled.
func (s *postgresEngine) classifyError(err error) *fault.Error {
	var said *pgconn.PgError
	switch {
	case errors.As(err, &said):
	case isUnreachable(err):
		return fault.New(fault.KindUnavailable, "%s", s.scrubSecrets(innermostCause(err))).
			WithHint("check that Postgres runs and can be reached from here: `pg_isready`")
	default:
		return fault.New(fault.KindUnknown, "%s", s.scrubSecrets(err.Error()))
	}
	kind, hint := stateMeans(said.Code)
	text := fmt.Sprintf("%s (SQLSTATE %s)", said.Message, said.Code)
	fail := fault.New(kind, "%s", s.scrubSecrets(text))
	fail.Hint = hint
	return fail
}

// isUnreachable reports whether a connection could not be made or was lost.
func isUnreachable(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	if errors.As(err, &connect) || errors.As(err, &network) {
		return true
	}
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, driver.ErrBadConn, pgconn.ErrConnClosed, net.ErrClosed},
		func(sign error) bool { return errors.Is(err, sign) })
}

// innermostCause leaves out the wrapping errors, which repeat user, database and every
// address that was tried, over several lines.
func innermostCause(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Error()
	}
	return err.Error()
}

// stateMeans returns kind and hint of an SQLSTATE; the first two characters are its class.
func stateMeans(code string) (kind fault.Kind, hint string) {
	switch code {
	case "42501":
		return fault.KindAuth, "the user needs CREATE on the schema once, and SELECT, INSERT, UPDATE and DELETE on the sbx_ tables"
	case "3D000":
		return fault.KindUsage, "create the database, or correct its name at the end of the URL"
	case "42P01", "42703":
		return fault.KindUsage, "check the database and its search_path"
	case "25006":
		return fault.KindUsage, "the URL names a read-only replica; name the primary, or add target_session_attrs=read-write"
	case "53300":
		return fault.KindUnavailable, "the server has no free connection; put a pooler in front of it or raise max_connections"
	case "53100":
		return fault.KindUnavailable, "the server's disk is full"
	case "57014":
		return fault.KindUnavailable, "the server cancelled the statement; check its load and its locks"
	}
	if len(code) < 2 {
		return fault.KindUnknown, ""
	}
	switch code[:2] {
	case "28":
		return fault.KindAuth, "check user and password in the URL (SBX_STORE_URL), and pg_hba.conf on the server"
	case "08", "53", "57", "58":
		return fault.KindUnavailable, "the server is starting, stopping or failing; try again"
	case "40", "55":
		return fault.KindUnavailable, "another process changed the same rows; try again"
	}
	return fault.KindUnknown, ""
}

const (
	channel = "sbx_task"

	// maxUnseen is how long a change may stay unseen whose notification was lost: a pooler
	// may pass none on.
	maxUnseen = 2 * time.Second

	// reconnect is the pause before a lost connection is made again.
	reconnect = 500 * time.Millisecond
)

func (s *postgresEngine) pollInterval() time.Duration { return s.look }

func (s *postgresEngine) notifyTopic(ctx context.Context, tx *sql.Tx, topic string) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_notify($1, $2)`, channel, topic)
	return err
}

// followTopics listens on a connection of its own. A failure there is no error: the
// connection is made again, and waiters poll.
func (s *postgresEngine) followTopics(ctx context.Context, b *waiters) {
	for ctx.Err() == nil {
		s.listenOnce(ctx, b)
		_ = poll.Sleep(ctx, reconnect) // it fails when ctx ends
	}
}

// listenOnce passes notifications to w while its connection lasts.
func (s *postgresEngine) listenOnce(ctx context.Context, b *waiters) {
	config := s.config.Copy()
	config.OnNotification = func(_ *pgconn.PgConn, news *pgconn.Notification) { b.publishTopic(news.Payload) }
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return
	}
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		conn.Close(late) //nolint:errcheck // it is lost already, or the store is being closed
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channel).ReadAll(); err != nil {
		return
	}
	b.publishAll() // notifications may have been missed
	for conn.WaitForNotification(ctx) == nil {
	}
}
