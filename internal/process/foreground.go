package process

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
)

// Foreground hands the terminal to a program and waits for its end; ctx asks it to end. Only what it says on
// standard error is kept: the error is the first line of that, nil where it said nothing, whatever its exit code.
func (p Process) Foreground(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Args[0] = p.Name()
	cmd.Env, cmd.Dir, cmd.WaitDelay = p.Environ, p.Workdir, drainTimeout
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it gives the terminal back
	said := &capped{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Stdin.File, p.Stdout.File, said
	err := cmd.Run()
	if line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n"); line != "" {
		return errors.New(line)
	}
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		return nil
	}
	return err
}
