package notify_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/notify"
)

// town is a network in memory, behind net.Pipe, in which each service has a host
// of its own. It lives with its clients in one bubble of virtual time.
type town struct {
	conns  chan net.Conn
	closed chan struct{}

	mu    sync.Mutex
	asked []request
	trace []string
}

// request is one that arrived.
type request struct {
	at                 time.Time
	host, method, path string
	header             http.Header
	body               string
}

// build makes a town whose services answer by their host; any other host is a
// mistake of the client.
func build(t *testing.T, services map[string]http.HandlerFunc) *town {
	t.Helper()
	w := &town{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{ReadHeaderTimeout: time.Hour, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.asked = append(w.asked, request{time.Now(), r.Host, r.Method, r.RequestURI, r.Header, string(body)})
		w.mu.Unlock()
		answer, ok := services[r.Host]
		if !assert.True(t, ok, "nobody lives at %s", r.Host) {
			return
		}
		answer(rw, r)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(w) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return w
}

// notifier tells the services of a town.
func (w *town) notifier(t *testing.T, targets notify.Targets) *notify.Notifier {
	t.Helper()
	n, err := notify.New(httpx.Net{Dial: w.dial, Agent: "sbx/test", Trace: func(line string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.trace = append(w.trace, line)
	}}, targets)
	require.NoError(t, err)
	t.Cleanup(n.Close)
	return n
}

func (w *town) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case w.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

// Accept takes the next connection.
func (w *town) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the town.
func (w *town) Close() error {
	select {
	case <-w.closed:
	default:
		close(w.closed)
	}
	return nil
}

// Addr is where the town is.
func (w *town) Addr() net.Addr { return &net.UnixAddr{Name: "town"} }

// requests are those that arrived so far.
func (w *town) requests() []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]request(nil), w.asked...)
}

// strictly reads a body that holds what out has and nothing else.
func strictly(t *testing.T, body string, out any) {
	t.Helper()
	d := json.NewDecoder(stringsReader(body))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(out), body)
}

// answer is a fixed answer.
func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// each answers with the handlers in turn; the last one stays.
func each(handlers ...http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handlers[min(n, len(handlers)-1)]
		n++
		mu.Unlock()
		h(w, r)
	}
}

// hang answers nothing until the client leaves.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
