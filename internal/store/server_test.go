package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestPlaceOfAServer(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"postgres://me:pw@db.example/sbx":                      "postgres db.example:5432/sbx",
		"postgresql://me:pw@[::1]:6543/sbx?sslmode=disable":    "postgres [::1]:6543/sbx",
		"postgres://me@/sbx?host=/run/postgresql&password=sbx": "postgres /run/postgresql/********",
	} {
		s, err := newPostgres(raw)
		require.NoError(t, err)
		assert.Equal(t, want, s.String())
		assert.Equal(t, "sbx", s.config.RuntimeParams["application_name"])
	}
	s, err := newPostgres("postgres://me@h/db?application_name=cron")
	require.NoError(t, err)
	assert.Equal(t, "cron", s.config.RuntimeParams["application_name"], "the URL decides")
}

func TestJudgementOfTheServersWords(t *testing.T) {
	t.Parallel()
	s, err := newPostgres("postgres://me:s3cret@h/db")
	require.NoError(t, err)
	for code, want := range map[string]fault.Kind{
		"28P01": fault.KindAuth, "28000": fault.KindAuth, "42501": fault.KindAuth, "3D000": fault.KindUsage, "42P01": fault.KindUsage,
		"25006": fault.KindUsage, "53300": fault.KindUnavailable, "53100": fault.KindUnavailable, "57P01": fault.KindUnavailable,
		"57P03": fault.KindUnavailable, "57014": fault.KindUnavailable, "08006": fault.KindUnavailable, "40P01": fault.KindUnavailable,
		"55P03": fault.KindUnavailable, "XX000": fault.KindUnknown, "": fault.KindUnknown,
	} {
		got := s.classifyError(fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code, Message: "it says\ns3cret"}))
		assert.Equal(t, want, got.Kind, code)
		assert.Equal(t, "it says ******** (SQLSTATE "+code+")", got.Error())
		assert.Equal(t, want != fault.KindUnknown, got.Hint != "", code)
	}
	for err, want := range map[error]fault.Kind{
		io.ErrUnexpectedEOF: fault.KindUnavailable, driver.ErrBadConn: fault.KindUnavailable,
		&net.OpError{Op: "read", Err: errors.New("reset")}: fault.KindUnavailable, errors.New("odd"): fault.KindUnknown,
	} {
		got := s.classifyError(fmt.Errorf("s3cret:\n\t%w", err))
		assert.Equal(t, want, got.Kind, err)
		assert.Contains(t, got.Error(), err.Error())
		assert.NotContains(t, got.Error(), "s3cret")
	}
}

// TestServerThatHangs uses a server that accepts connections and sends nothing.
func TestServerThatHangs(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close() //nolint:errcheck // the test is over
	s, err := newPostgres("postgres://me:s3cret@" + listener.Addr().String() + "/db?sslmode=disable")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.openDB(ctx)
	require.Error(t, err)
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(storeError(t.Context(), s, "open", err)), "our own limit")
	assert.Equal(t, fault.KindTimeout, fault.KindOf(storeError(ctx, s, "open", err)), "the limit of whoever asked")
}
