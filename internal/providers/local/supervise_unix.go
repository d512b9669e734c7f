//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/wire"
)

func supported() bool { return true }

// supervise starts a detached supervisor, hands it its order and the lock, and
// waits for its answer. The supervisor outlives this process.
func (c *Client) supervise(ctx context.Context, order wire.Order, lock *os.File) (wire.Ready, error) {
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
		keepFilesHere()
		err = cmd.Start()
	}
	err = errors.Join(err, say.Close(), closeLog())
	if err != nil {
		return ready, fmt.Errorf("starting the supervisor: %w", err)
	}
	// Collects the supervisor, should this process outlive it.
	go func() { _ = cmd.Wait() }() // its record tells how it ended
	if err := give(stdin, order); err != nil {
		return ready, fmt.Errorf("ordering the supervisor: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = answer.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err = wire.NewReader(answer).Next(&ready)
	switch {
	case ctx.Err() != nil:
		// Nothing may run that nobody was told about.
		return ready, errors.Join(ctx.Err(), cmd.Process.Kill())
	case errors.Is(err, io.EOF):
		return ready, fmt.Errorf("the supervisor died before it answered; see %s", c.store.SupervisorLog(order.Record.ID))
	}
	return ready, err
}

// give hands the order over. The sandbox may have come to its end before the pipe
// is closed here, in which case whoever collected the supervisor has closed it.
func give(to io.WriteCloser, order wire.Order) error {
	err := wire.Write(to, order)
	if closing := to.Close(); !errors.Is(closing, os.ErrClosed) {
		err = errors.Join(err, closing)
	}
	return err
}

// supervisorCommand prepares the detached process.
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

// supervisorArgs is this same binary under another first argument. The path
// goes through /proc where there is one: a binary that was replaced or removed
// meanwhile (an upgrade, `go run`) still is itself there. Where only systemd
// can hold a hard limit, its scope is put around the supervisor.
func (c *Client) supervisorArgs(order wire.Order) (*exec.Cmd, error) {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"sbx", wire.SupervisorArg}, Env: []string{"GOMAXPROCS=1"}}
	_, err := os.Lstat(cmd.Path)
	if err == nil && !order.InScope {
		return cmd, nil
	}
	if cmd.Path, err = os.Executable(); err != nil || !order.InScope {
		return cmd, err
	}
	cmd.Args = cgroup.ScopeArgs(order.Record.ID, groupLimits(order.Record.Limits), []string{cmd.Path, wire.SupervisorArg})
	cmd.Path, err = findTool(cmd.Args[0], c.deps.Lookup)
	for _, key := range []string{"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"} {
		if value, ok := c.deps.Lookup(key); ok {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
	}
	return cmd, err
}
