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

// Connect starts a program whose standard input and output are a connection, such as ssh with a command. The program and
// all that it starts form a session of their own, which Close kills. Close does not wait for them: a program that was
// started by the first one, such as ssh to a jump host, may hold its output open for any time.
func (p Process) Connect(program string, args ...string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // the connection outlives the request that opens it
	c := &pipeConn{program: program, cancel: cancel, ended: make(chan struct{})}
	cmd := p.command(ctx, program, args)
	cmd.Stderr = &c.stderr
	detach(cmd)
	cmd.Cancel = func() error { return killSession(cmd.Process) }
	inherited, err := c.makePipes(cmd)
	if err == nil {
		err = cmd.Start()
	}
	for _, f := range inherited {
		_ = f.Close() // the program has its own copies
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
	stdin   *os.File // this end of the program's stdin
	stdout  *os.File // this end of the program's stdout
	stderr  outputTail
	cancel  context.CancelFunc
	ended   chan struct{} // is closed when the program has ended
	exit    error         // of the program; read after ended
}

// makePipes connects both streams; inherited are the ends that the program is given.
func (c *pipeConn) makePipes(cmd *exec.Cmd) (inherited []*os.File, err error) {
	var stdin, stdout *os.File
	if stdin, c.stdin, err = os.Pipe(); err != nil {
		return nil, err
	}
	inherited = append(inherited, stdin)
	if c.stdout, stdout, err = os.Pipe(); err != nil {
		return inherited, err
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	return append(inherited, stdout), nil
}

// Read implements net.Conn. Where the program has failed, its exit replaces the end of the stream.
func (c *pipeConn) Read(b []byte) (int, error) {
	n, err := c.stdout.Read(b)
	return n, c.exitInsteadOf(err)
}

// Write implements net.Conn.
func (c *pipeConn) Write(b []byte) (int, error) {
	n, err := c.stdin.Write(b)
	return n, c.exitInsteadOf(err)
}

// exitInsteadOf replaces the error of a stream, which only says that it has ended, by the exit of the program and its
// last line on stderr, if it has failed. Errors of this end of the connection stay as they are.
func (c *pipeConn) exitInsteadOf(err error) error {
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
	return fmt.Errorf("%s ended: %w%s", c.program, c.exit, c.stderr.lastLine())
}

// CloseWrite ends what the program reads.
func (c *pipeConn) CloseWrite() error { return c.stdin.Close() }

// Close implements net.Conn.
func (c *pipeConn) Close() error {
	c.cancel()
	return c.closePipes()
}

func (c *pipeConn) closePipes() error {
	var all error
	for _, f := range []*os.File{c.stdin, c.stdout} {
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
func (c *pipeConn) SetReadDeadline(t time.Time) error { return c.stdout.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *pipeConn) SetWriteDeadline(t time.Time) error { return c.stdin.SetWriteDeadline(t) }

// LocalAddr implements net.Conn.
func (c *pipeConn) LocalAddr() net.Addr { return programAddr(c.program) }

// RemoteAddr implements net.Conn.
func (c *pipeConn) RemoteAddr() net.Addr { return programAddr(c.program) }

type programAddr string

// Network implements net.Addr.
func (programAddr) Network() string { return "pipe" }

// String implements net.Addr.
func (a programAddr) String() string { return string(a) }

// tailLimit is how many bytes of stderr are kept.
const tailLimit = 4 << 10

// outputTail keeps the end of what a program prints.
type outputTail struct {
	mu   sync.Mutex
	text string
}

var _ io.Writer = (*outputTail)(nil)

// Write implements io.Writer.
func (w *outputTail) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text += string(b)
	w.text = w.text[max(0, len(w.text)-tailLimit):]
	return len(b), nil
}

// lastLine is ": " and the last line; "" = nothing was printed.
func (w *outputTail) lastLine() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.TrimSpace(w.text)
	if text == "" {
		return ""
	}
	return ": " + text[strings.LastIndexByte(text, '\n')+1:]
}
