package store_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
	"sbx/internal/testkit/tiertest"
)

// gateway is a connection to the server that can be cut, as by a restart: connections end,
// and new ones are refused until it is open again.
type gateway struct {
	socket  string
	forward func(ctx context.Context) (net.Conn, error)

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
	wg       sync.WaitGroup
}

// newGateway is open. It returns the URL of a schema through it, and the direct one.
func newGateway(t *testing.T) (g *gateway, through, past string) {
	t.Helper()
	past = own(t)
	u, err := url.Parse(past)
	require.NoError(t, err)
	config, err := pgconn.ParseConfig(past)
	require.NoError(t, err)
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	dir, err := os.MkdirTemp("", "sbx") //nolint:usetesting // the path of a socket has to be short
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	g = &gateway{socket: filepath.Join(dir, ".s.PGSQL.5432"), forward: func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	g.open(t)
	t.Cleanup(g.cut)
	query := u.Query()
	query.Set("host", dir)
	query.Set("port", "5432")
	query.Set("sslmode", "disable")
	u.Host, u.RawQuery = "", query.Encode()
	return g, u.String(), past
}

func (g *gateway) open(t *testing.T) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", g.socket)
	require.NoError(t, err)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listener = listener
	g.wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := g.forward(t.Context())
			if err != nil {
				client.Close() //nolint:errcheck // nobody is there
				continue
			}
			g.join(listener, client, server)
		}
	})
}

// join joins two connections, unless the gateway was cut meanwhile.
func (g *gateway) join(way net.Listener, client, server net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != way {
		_ = errors.Join(client.Close(), server.Close())
		return
	}
	g.conns = append(g.conns, client, server)
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		g.wg.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = errors.Join(pair[0].Close(), pair[1].Close())
		})
	}
}

// cut ends all connections and refuses new ones.
func (g *gateway) cut() {
	g.mu.Lock()
	if g.listener != nil {
		g.listener.Close() //nolint:errcheck // what matters is that nobody comes in
	}
	g.listener = nil
	for _, conn := range g.conns {
		conn.Close() //nolint:errcheck // it may be over already
	}
	g.conns = nil
	g.mu.Unlock()
	g.wg.Wait()
}

// awaiting waits for a version in the background.
func awaiting(ctx context.Context, d *store.Database, version int64) <-chan error {
	done := make(chan error, 1)
	go func() {
		t, err := d.AwaitTask(ctx, "t-0", version)
		if err == nil && t.Version != version+1 {
			err = fault.New(fault.KindUnknown, "version %d after %d", t.Version, version)
		}
		done <- err
	}()
	return done
}

// heard waits for an end without an error.
func heard(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(2 * time.Minute):
		require.Fail(t, "nobody told it")
	}
}

func swap(t *testing.T, d *store.Database, version int64) {
	t.Helper()
	_, err := d.SwapTask(t.Context(), store.Task{ID: "t-0", Version: version}, 0)
	require.NoError(t, err)
}

// TestPostgresTellsOfTasks waits in stores that poll once an hour: the server wakes them.
func TestPostgresTellsOfTasks(t *testing.T) {
	t.Parallel()
	o := store.Options{URL: own(t)}
	waits, changes := opened(t, o), opened(t, o)
	store.LookEvery(waits, time.Hour)
	fill(t, changes, 1)
	var slowest time.Duration
	for version := int64(1); version <= 30; version++ {
		done := awaiting(t.Context(), waits, version)
		alive := awaiting(t.Context(), waits, version) // they share the connection
		pass(t, 5*time.Millisecond)                    // it has polled by now, as a rule
		began := time.Now()
		swap(t, changes, version)
		heard(t, done)
		slowest = max(slowest, time.Since(began))
		heard(t, alive)
	}
	t.Logf("slowest of 30: %s", slowest)
}

// TestPostgresThatRestarts cuts every connection during a wait, changes the task directly,
// and opens the gateway again: the change is seen.
func TestPostgresThatRestarts(t *testing.T) {
	t.Parallel()
	g, through, past := newGateway(t)
	waits, changes := opened(t, store.Options{URL: through}), opened(t, store.Options{URL: past})
	store.LookEvery(waits, 50*time.Millisecond)
	fill(t, changes, 1)
	version := int64(0)
	for range 2 {
		version++
		done := awaiting(t.Context(), waits, version)
		g.cut()
		pass(t, 300*time.Millisecond)
		select {
		case err := <-done:
			require.Fail(t, "the waiting ended early", "%v", err)
		default:
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		err := <-awaiting(ctx, waits, version)
		cancel()
		assert.Equal(t, fault.KindTimeout, fault.KindOf(err), "it ends with its context: %v", err)
		swap(t, changes, version)
		g.open(t)
		heard(t, done)
	}
	store.LookEvery(waits, time.Hour) // and notifications work again
	for range 3 {
		version++
		done := awaiting(t.Context(), waits, version)
		swap(t, changes, version)
		heard(t, done)
	}
}

// TestPostgresIsLeftAlone shows that Close ends the listening connection, and every waiter.
func TestPostgresIsLeftAlone(t *testing.T) {
	t.Parallel()
	o := store.Options{URL: own(t)}
	u, err := url.Parse(o.URL)
	require.NoError(t, err)
	query := u.Query()
	name := query.Get("search_path")
	query.Set("application_name", name)
	u.RawQuery = query.Encode()
	d, err := store.Open(t.Context(), store.Options{URL: u.String()})
	require.NoError(t, err)
	store.LookEvery(d, time.Hour)
	fill(t, d, 1)
	done := awaiting(t.Context(), d, 1)
	listening := `SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN sbx_task' AND application_name = '` + name + `'`
	assert.Eventually(t, func() bool { return answered(t, listening) == "1" }, tiertest.Limit(t), 5*time.Millisecond)
	require.NoError(t, d.Close())
	require.ErrorContains(t, <-done, "closed")
	all := `SELECT count(*) FROM pg_stat_activity WHERE application_name = '` + name + `'`
	assert.Eventually(t, func() bool { return answered(t, all) == "0" }, tiertest.Limit(t), 5*time.Millisecond)
	_, err = d.AwaitTask(t.Context(), "t-0", 1)
	require.ErrorContains(t, err, "closed", "and nothing listens again")
	assert.Equal(t, "0", answered(t, all))
}

// answered is the one value that a query returns.
func answered(t *testing.T, query string) string {
	t.Helper()
	raw, _ := postgres(t)
	conn, err := pgconn.Connect(t.Context(), raw.String())
	require.NoError(t, err)
	results, err := conn.Exec(t.Context(), query).ReadAll()
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	return string(results[0].Rows[0][0])
}
