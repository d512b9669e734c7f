package wiretest

import (
	"context"
	"errors"
	"net"
	"sync"
)

// pipes is a listener whose connections are net.Pipe, so that a server and its
// client live in one bubble of virtual time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	first  sync.Once
	served sync.WaitGroup

	mu     sync.Mutex
	open   []net.Conn // the server's ends
	broken error      // of the way to the server; nil = none
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// begin starts serving at the first connection.
func (p *pipes) begin(serve func()) {
	p.first.Do(func() { p.served.Go(serve) })
}

func (p *pipes) dial(ctx context.Context, network string) (net.Conn, error) {
	if err := p.trouble(network); err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open = append(p.open, server)
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// trouble is the error of dialling now, in the form in which net.Dialer gives it.
func (p *pipes) trouble(network string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, netError := errors.AsType[net.Error](p.broken); !netError {
		return p.broken // of TLS, say: it comes after the connection
	}
	return &net.OpError{Op: "dial", Net: network, Err: p.broken}
}

func (p *pipes) unplug(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = err
	if err == nil {
		return
	}
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

// Accept waits for a Dial.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr names the listener.
func (p *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
