package httpx_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
)

// memory is a server behind net.Pipe, so that it shares one bubble of virtual time with its client.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}

	mu     sync.Mutex
	dialed []string
	asked  []*http.Request
}

// serve makes a server that ends with the test.
func serve(t *testing.T, answer http.HandlerFunc) *memory {
	t.Helper()
	m := &memory{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{ReadHeaderTimeout: time.Hour, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.asked = append(m.asked, r)
		m.mu.Unlock()
		answer(w, r)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(m) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return m
}

// Dial opens a connection, whatever the address.
func (m *memory) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	m.mu.Lock()
	m.dialed = append(m.dialed, address)
	m.mu.Unlock()
	ours, theirs := net.Pipe()
	select {
	case m.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	select {
	case <-m.closed:
	default:
		close(m.closed)
	}
	return nil
}

func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// requests are the requests so far.
func (m *memory) requests() []*http.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*http.Request(nil), m.asked...)
}

// Secret is the key of every client in these tests.
const secret = "sk-9f2c71/a+b&c"

// open makes a client of a server in memory.
func (m *memory) open(t *testing.T, o httpx.Options) *httpx.Client {
	t.Helper()
	return m.traced(t, o, nil)
}

func (m *memory) traced(t *testing.T, o httpx.Options, trace func(string)) *httpx.Client {
	t.Helper()
	if o.Base == "" {
		o.Base = "http://api.example/v1/"
	}
	o.Profile, o.Secrets = "prod", []string{secret}
	if o.Header == nil {
		o.Header = http.Header{"X-Api-Key": {secret}}
	}
	c, err := httpx.New(httpx.Net{Dial: m.Dial, Trace: trace, Agent: "sbx/test"}, o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// client serves answers and opens a client of them.
func client(t *testing.T, answer http.HandlerFunc, o httpx.Options) (*httpx.Client, *memory) {
	t.Helper()
	m := serve(t, answer)
	return m.open(t, o), m
}

// text answers with a body.
func text(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
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

// reset closes the connection.
func reset(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// begin sends the start of a longer body, then calls next.
func begin(start string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(start))
		_ = http.NewResponseController(w).Flush()
		next(w, r)
	}
}

// pass lets time pass on the server.
func pass(d time.Duration) {
	<-time.After(d)
}
