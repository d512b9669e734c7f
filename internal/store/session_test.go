package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestSessionDoesWhatTheStoreNeedsAndNoMore(t *testing.T) {
	t.Parallel()
	s := &pgSession{}
	_, errPrepare := s.Prepare("SELECT 1")
	_, errBegin := s.Begin()
	_, errOpen := pgConnector{}.Open("name")
	for _, err := range []error{errPrepare, errBegin, errOpen} {
		require.ErrorIs(t, err, errNotHere)
	}
	for value, want := range map[any]string{"a": "a", int64(-7): "-7", true: "true", false: "false"} {
		got, err := encodeParameter(value)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, value := range []any{nil, 1.5, time.Time{}} {
		_, err := encodeParameter(value)
		require.Error(t, err)
	}
}

// TestPostgresSessionRecovers: neither a statement that outlives its context nor a failed
// transaction affects the next call.
func TestPostgresSessionRecovers(t *testing.T) {
	t.Parallel()
	raw := os.Getenv("SBX_TEST_POSTGRES")
	if raw == "" {
		t.Skip("SBX_TEST_POSTGRES names no Postgres")
	}
	s, err := newPostgres(raw)
	require.NoError(t, err)
	db, err := s.openDB(t.Context())
	require.NoError(t, err)
	d := &Database{engine: s, db: db}
	defer func() { require.NoError(t, d.Close()) }()
	db.SetMaxOpenConns(1)
	none := func(*sql.Rows) error { return nil }

	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := d.queryRows(ctx, "sleep", `SELECT pg_sleep(60)`, nil, none)
		cancel()
		assert.Equal(t, fault.KindTimeout, fault.KindOf(err), err)

		planned := errors.New("planned")
		err = d.writeTx(t.Context(), "fail", func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `CREATE TABLE never (n int)`)
			return errors.Join(err, planned)
		})
		require.ErrorContains(t, err, "planned")
		err = d.writeTx(t.Context(), "fail", func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `SELECT * FROM nowhere`)
			assert.ErrorContains(t, err, "nowhere")
			return nil // commits all the same
		})
		require.ErrorContains(t, err, "answered COMMIT with ROLLBACK")

		ctx, cancel = context.WithCancel(t.Context())
		err = d.writeTx(ctx, "cancel", func(ctx context.Context, _ *sql.Tx) error {
			cancel()
			return ctx.Err()
		})
		cancel()
		assert.Equal(t, fault.KindCanceled, fault.KindOf(err), err)
		var n int
		err = d.queryRows(t.Context(), "look", `SELECT count(*) FROM pg_tables WHERE tablename = $1`, []any{"never"}, func(rows *sql.Rows) error { return rows.Scan(&n) })
		require.NoError(t, err)
		assert.Zero(t, n)
	}
}
