package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Connect starts a program whose standard input and output are a connection, as ssh is with a command. Its programs have
// a session of their own and end with the connection: Close waits for none of them, since one that they have started, such
// as a jump host, may hold their output for any time.
func (p Process) Connect(program string, args ...string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // the connection outlives the request that opens it
	c := &pipeConn{program: program, cancel: cancel, ended: make(chan struct{})}
	cmd := p.command(ctx, program, args)
	cmd.Stderr = &c.said
	detach(cmd)
	cmd.Cancel = func() error { return killSession(cmd.Process) }
	theirs, err := c.pipes(cmd)
	if err == nil {
		err = cmd.Start()
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		cancel()
		_ = c.closePipes()
		return nil, err
	}
	go func() {
		defer close(c.ended)
		c.exit = cmd.Wait()
	}()
	return c, nil
}

// pipeConn is a connection through a program.
type pipeConn struct {
	program string
	in, out *os.File
	said    lastWords
	cancel  context.CancelFunc
	ended   chan struct{} // is closed when the program has ended
	exit    error         // of the program; read after ended
}

// pipes connects both streams; theirs are the ends of the program.
func (c *pipeConn) pipes(cmd *exec.Cmd) (theirs []*os.File, err error) {
	var stdin, stdout *os.File
	if stdin, c.in, err = os.Pipe(); err != nil {
		return nil, err
	}
	theirs = append(theirs, stdin)
	if c.out, stdout, err = os.Pipe(); err != nil {
		return theirs, err
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	return append(theirs, stdout), nil
}

// Read implements net.Conn. The end of a program that has failed is its error.
func (c *pipeConn) Read(b []byte) (int, error) {
	n, err := c.out.Read(b)
	return n, c.wrapExit(err)
}

// Write implements net.Conn.
func (c *pipeConn) Write(b []byte) (int, error) {
	n, err := c.in.Write(b)
	return n, c.wrapExit(err)
}

// wrapExit is the error of a stream that has ended, with what the program says of it.
func (c *pipeConn) wrapExit(err error) error {
	if err == nil || errors.Is(err, os.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	select {
	case <-c.ended:
	case <-time.After(drainTimeout):
		return err
	}
	if c.exit == nil {
		return err
	}
	return fmt.Errorf("%s ended: %w%s", c.program, c.exit, c.said.line())
}

// CloseWrite ends what the program reads.
func (c *pipeConn) CloseWrite() error { return c.in.Close() }

// Close implements net.Conn.
func (c *pipeConn) Close() error {
	c.cancel()
	return c.closePipes()
}

func (c *pipeConn) closePipes() error {
	var all error
	for _, f := range []*os.File{c.in, c.out} {
		if f == nil {
			continue
		}
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// SetDeadline implements net.Conn.
func (c *pipeConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *pipeConn) SetReadDeadline(t time.Time) error { return c.out.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *pipeConn) SetWriteDeadline(t time.Time) error { return c.in.SetWriteDeadline(t) }

// LocalAddr implements net.Conn.
func (c *pipeConn) LocalAddr() net.Addr { return programAddr(c.program) }

// RemoteAddr implements net.Conn.
func (c *pipeConn) RemoteAddr() net.Addr { return programAddr(c.program) }

type programAddr string

// Network implements net.Addr.
func (programAddr) Network() string { return "pipe" }

// String implements net.Addr.
func (a programAddr) String() string { return string(a) }

// lastWords keeps the end of what a program prints.
type lastWords struct {
	mu   sync.Mutex
	text string
}

var _ io.Writer = (*lastWords)(nil)

// Write implements io.Writer.
func (w *lastWords) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text += string(b)
	w.text = w.text[max(0, len(w.text)-4<<10):]
	return len(b), nil
}

// line is the last line, behind a colon.
func (w *lastWords) line() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.TrimSpace(w.text)
	if text == "" {
		return ""
	}
	return ": " + text[strings.LastIndexByte(text, '\n')+1:]
}
