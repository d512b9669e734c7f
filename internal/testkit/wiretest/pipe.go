package wiretest

import (
	"context"
	"errors"
	"net"
	"sync"
)

// pipeListener is a listener whose connections are net.Pipe, so that a server and its client
// share one bubble of virtual time.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	first  sync.Once
	served sync.WaitGroup

	mu     sync.Mutex
	open   []net.Conn // the server's ends
	broken error      // of every dial; nil = none
}

func (p *pipeListener) dialPipe(ctx context.Context, network string) (net.Conn, error) {
	if err := p.dialError(network); err != nil {
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

func (p *pipeListener) dialError(network string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, netError := errors.AsType[net.Error](p.broken); !netError {
		return p.broken // such as that of a TLS handshake
	}
	return &net.OpError{Op: "dial", Net: network, Err: p.broken}
}

func (p *pipeListener) breakConnections(err error) {
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
func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial.
func (p *pipeListener) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr names the listener.
func (p *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
