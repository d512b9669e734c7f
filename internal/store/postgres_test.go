package store_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
)

// envPostgres names a server on which these tests may create schemas.
const envPostgres = "SBX_TEST_POSTGRES"

// postgres returns the server's URL, and runs statements on it beside the store.
func postgres(t *testing.T) (u *url.URL, run func(ctx context.Context, statements string)) {
	t.Helper()
	raw := os.Getenv(envPostgres)
	if raw == "" {
		t.Skip(envPostgres + " names no Postgres; `.ci/run postgres` starts one")
	}
	u, err := url.Parse(raw)
	require.NoError(t, err)
	return u, func(ctx context.Context, statements string) { execute(ctx, t, raw, statements) }
}

func execute(ctx context.Context, t *testing.T, raw, statements string) {
	t.Helper()
	conn, err := pgconn.Connect(ctx, raw)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, statements).ReadAll()
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
}

// own returns the URL of an empty schema that is dropped with the test.
func own(t *testing.T) string {
	t.Helper()
	u, run := postgres(t)
	name := "sbx_test_" + strings.ToLower(rand.Text())
	run(t.Context(), "CREATE SCHEMA "+name)
	t.Cleanup(func() { run(context.WithoutCancel(t.Context()), "DROP SCHEMA "+name+" CASCADE") })
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	return u.String()
}

func TestPostgresKeepsTheContract(t *testing.T) {
	t.Parallel()
	keepsTheContract(t, url.Values{})
}

// TestPostgresKeepsTheContractAsItIsSetUp uses a server with other defaults: a transaction
// that sees nothing committed while it waits for a lock, and an order of texts that is not
// by bytes.
func TestPostgresKeepsTheContractAsItIsSetUp(t *testing.T) {
	t.Parallel()
	keepsTheContract(t, url.Values{"default_transaction_isolation": {"serializable"}, "timezone": {"Asia/Tokyo"}})
}

func keepsTheContract(t *testing.T, defaults url.Values) {
	t.Helper()
	postgres(t) // or skip as a whole
	runContract(t, func(t *testing.T) subject {
		t.Helper()
		u, err := url.Parse(own(t))
		require.NoError(t, err)
		query := u.Query()
		maps.Copy(query, defaults)
		u.RawQuery = query.Encode()
		o := store.Options{URL: u.String()}
		again := func(t *testing.T) store.Store {
			t.Helper()
			return opened(t, o)
		}
		return subject{Store: opened(t, o), Again: again, Pass: pass, TTL: time.Second}
	})
}

// pass waits: these leases are by the server's clock.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func TestManyProcessesOnAFreshPostgresAndAnOlderOne(t *testing.T) {
	t.Parallel()
	manyProcesses(t, store.Options{URL: own(t), StateDir: "unused"}, 0)
	manyProcesses(t, store.Options{URL: foreign(t, versionOne), StateDir: "unused"}, 1)
}

// refuses checks an error's kind and hint, that it is one line, and has no password.
func refuses(t *testing.T, err error, kind fault.Kind, texts ...string) {
	t.Helper()
	require.Error(t, err)
	assert.Equal(t, kind, fault.KindOf(err), err)
	assert.NotEmpty(t, fault.HintOf(err), err)
	assert.NotContains(t, err.Error(), "\n")
	for _, text := range texts {
		assert.Contains(t, err.Error(), text)
	}
	for at := err; at != nil; at = errors.Unwrap(at) {
		assert.NotContains(t, at.Error()+fmt.Sprintf("%+v %#v", at, at), "s3cret")
	}
}

func TestPostgresRefusals(t *testing.T) {
	t.Parallel()
	u, _ := postgres(t)
	wrong := *u
	wrong.User = url.UserPassword(u.User.Username(), "s3cret/@#")
	_, err := store.Open(t.Context(), store.Options{URL: wrong.String()})
	refuses(t, err, fault.KindAuth, "password authentication failed")
	nowhere := *u
	nowhere.Path = "/no_such_database"
	_, err = store.Open(t.Context(), store.Options{URL: nowhere.String()})
	refuses(t, err, fault.KindUsage, "no_such_database")
	readOnly := *u
	query := u.Query()
	query.Set("default_transaction_read_only", "on")
	query.Set("search_path", "nowhere")
	readOnly.RawQuery = query.Encode()
	_, err = store.Open(t.Context(), store.Options{URL: readOnly.String()})
	refuses(t, err, fault.KindUsage, "read-only")
}

// TestPostgresGoesAway ends the server's side of every connection: the call that meets it
// may fail with a reason; the next one works.
func TestPostgresGoesAway(t *testing.T) {
	t.Parallel()
	o := store.Options{URL: own(t)}
	u, err := url.Parse(o.URL)
	require.NoError(t, err)
	query := u.Query()
	query.Set("application_name", query.Get("search_path"))
	u.RawQuery = query.Encode()
	o.URL = u.String()
	d := opened(t, o)
	_, run := postgres(t)
	for range 5 {
		require.NoError(t, d.PutRun(t.Context(), store.Run{ID: "r"}))
		run(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '"+query.Get("search_path")+"'")
		if _, err := d.Acquire(t.Context(), "name", "me", time.Hour); err != nil && fault.KindOf(err) != fault.KindLocked {
			refuses(t, err, fault.KindUnavailable)
		}
	}
	_, err = d.Runs(t.Context(), 0)
	require.NoError(t, err)
}

func TestPostgresThatIsDown(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	for _, raw := range []string{
		"postgres://me:s3cret@" + address + "/db?sslmode=disable",
		"postgresql://me@" + address + "/db?password=s3cret",
		"postgres://me:s3cret@/db?host=" + url.QueryEscape(t.TempDir()),
	} {
		d, err := store.New(store.Options{URL: raw})
		require.NoError(t, err, "nothing is asked yet")
		_, err = d.Runs(t.Context(), 0)
		refuses(t, err, fault.KindUnavailable, "store postgres ", "runs")
		assert.NotContains(t, d.String(), "s3cret")
		_, err = store.ReadTasks(t.Context(), raw)
		refuses(t, err, fault.KindUnavailable, "tasks at postgres ")
	}
}

func TestURLThatIsNone(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"mysql://me:s3cret@h/db", "s3cret", "postgres:s3cret", "postgres://me:12/s3cret@h/db", "postgres://me:x#s3cret@h/db",
		"postgres://me:s3cret%zz@h/db", "postgres://me:s3cret@h:port/db", "postgres://me:s3cret@h/db?sslmode=s3cret", "postgres://h/db#s3cret",
	} {
		_, err := store.Open(t.Context(), store.Options{URL: raw})
		refuses(t, err, fault.KindUsage, "store.url: ")
		_, err = store.ReadTasks(t.Context(), raw)
		refuses(t, err, fault.KindUsage, "URL of the tasks: ")
	}
}
