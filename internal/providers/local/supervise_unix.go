//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sbx/internal/providers"
	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/wire"
)

func isSupported() bool { return true }

// startSupervisor starts a detached supervisor, passes it its order and the lock, and waits
// for its answer. The supervisor outlives this process.
func (c *Client) startSupervisor(ctx context.Context, order wire.Order, lock *os.File) (wire.Ready, error) {
	var ready wire.Ready
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	answer, say, err := os.Pipe()
	if err != nil {
		return ready, err
	}
	defer answer.Close()
	cmd, closeLog, err := c.supervisorCommand(order, say, lock)
	if err != nil {
		return ready, errors.Join(err, say.Close())
	}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		closeInheritedOnExec()
		err = cmd.Start()
	}
	err = errors.Join(err, say.Close(), closeLog())
	if err != nil {
		return ready, fmt.Errorf("starting the supervisor: %w", err)
	}
	// Reaps the supervisor if this process outlives it.
	go func() { _ = cmd.Wait() }() // the record says how it ended
	if err := sendOrder(stdin, order); err != nil {
		return ready, fmt.Errorf("sending the order to the supervisor: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = answer.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err = wire.NewReader(answer).Next(&ready)
	switch {
	case ctx.Err() != nil:
		// Nothing may run without the caller's knowledge.
		return ready, errors.Join(ctx.Err(), cmd.Process.Kill())
	case errors.Is(err, io.EOF):
		return ready, fmt.Errorf("the supervisor died before it answered; see %s", c.store.SupervisorLog(order.Record.ID))
	}
	return ready, err
}

// sendOrder sends the order. The sandbox may have ended before the pipe is closed here; then
// cmd.Wait has closed it.
func sendOrder(to io.WriteCloser, order wire.Order) error {
	err := wire.Write(to, order)
	if closing := to.Close(); !errors.Is(closing, os.ErrClosed) {
		err = errors.Join(err, closing)
	}
	return err
}

// supervisorCommand prepares the detached process and its log file.
func (c *Client) supervisorCommand(order wire.Order, say, lock *os.File) (*exec.Cmd, func() error, error) {
	log, err := os.OpenFile(c.store.SupervisorLog(order.Record.ID), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	cmd, err := c.supervisorArgs(order)
	if err != nil {
		return nil, nil, errors.Join(err, log.Close())
	}
	cmd.Dir, cmd.Stderr, cmd.ExtraFiles = "/", log, []*os.File{say, lock} // SupervisorReadyFD, SupervisorLockFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, log.Close, nil
}

// supervisorArgs is this same binary with another first argument. The path is in /proc where
// that exists: it still works when the binary was replaced or removed meanwhile (an upgrade,
// `go run`). Where only systemd can hold a hard limit, the supervisor runs in its scope.
func (c *Client) supervisorArgs(order wire.Order) (*exec.Cmd, error) {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"sbx", wire.SupervisorArg}, Env: []string{"GOMAXPROCS=1"}}
	_, err := os.Lstat(cmd.Path)
	if err == nil && !order.InScope {
		return cmd, nil
	}
	if cmd.Path, err = os.Executable(); err != nil || !order.InScope {
		return cmd, err
	}
	l := order.Record.Limits
	cmd.Args = cgroup.ScopeArgs(order.Record.ID, cgroup.Limits{MemoryBytes: l.MemoryBytes, PIDs: l.PIDs, CPU: l.CPU}, []string{cmd.Path, wire.SupervisorArg})
	cmd.Path, err = findTool(cmd.Args[0], c.deps.Lookup)
	for _, key := range []string{"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"} {
		if value, ok := c.deps.Lookup(key); ok {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
	}
	return cmd, err
}

// openTerminal makes a separate terminal for the command, with job control and size, so that
// the caller's terminal is unaffected.
func (s *execStreams) openTerminal(cmd providers.Command) error {
	master, slave, err := pty.Open()
	if err != nil {
		return err
	}
	s.closeLater(master)
	s.closeLater(slave)
	s.commandFiles = [3]*os.File{slave, slave, slave}
	s.inputPipe, s.outputPipes = master, []*os.File{master}
	if err := resizeTerminal(master, cmd.TTY.Size); err != nil {
		s.closeOpened()
		return err
	}
	if cmd.TTY.Resize != nil {
		go func() { // ends with the caller's channel
			for size := range cmd.TTY.Resize {
				if resizeTerminal(master, size) != nil {
					return
				}
			}
		}()
	}
	return nil
}

func resizeTerminal(terminal *os.File, size providers.Size) error {
	if size.Columns == 0 || size.Rows == 0 {
		return nil
	}
	return pty.Setsize(terminal, &pty.Winsize{Cols: size.Columns, Rows: size.Rows})
}

// shutdownConn ends a connection for both sides, which wakes a blocked read.
func shutdownConn(conn *os.File) error { return unix.Shutdown(int(conn.Fd()), unix.SHUT_RDWR) }

// closeInheritedOnExec sets close-on-exec on every open file of this process. A file that
// the caller of sbx left open, such as the lock of a cron job or the pipe of a build, would
// otherwise stay open for as long as the sandbox runs.
func closeInheritedOnExec() {
	if closeOnExecFrom(firstInherited) == nil {
		return
	}
	entries, _ := os.ReadDir("/dev/fd") // without it the files stay open in the sandbox
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= firstInherited {
			unix.CloseOnExec(fd)
		}
	}
}

// firstInherited is the first descriptor after the standard ones.
const firstInherited = 3
