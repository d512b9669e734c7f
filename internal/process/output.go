package process

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"
)

const (
	// mostOutput bounds what a helper program may print, in bytes.
	mostOutput = 64 << 10
	// drainTimeout is how long the output of a program that has ended may stay open.
	drainTimeout = time.Second
)

// errOutput says that a helper program printed more than mostOutput.
var errOutput = errors.New("its output is larger than 64 KiB")

// Output runs a helper program in the environment of this process and gives what
// it prints. It reads nothing and may ask the operator on stderr; it ends with ctx.
func (p Process) Output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := p.command(ctx, program, args)
	cmd.Stderr = io.Writer(p.Stderr)
	if p.Stderr.File != nil {
		cmd.Stderr = p.Stderr.File // the terminal itself, for programs that ask there
	}
	return runBounded(ctx, cmd)
}

// Capture is Output for a program that must neither reach the terminal nor be left: it runs with these environment
// variables (KEY=VALUE) besides, in a session of its own, whose programs all end with ctx. said is what it printed on
// stderr, also beside an error.
func (p Process) Capture(ctx context.Context, env []string, program string, args ...string) (out, said string, err error) {
	cmd, stderr := p.command(ctx, program, args), &capped{}
	cmd.Env, cmd.Stderr = slices.Concat(p.Environ, env), stderr
	detach(cmd)
	cmd.Cancel = func() error { return killSession(cmd.Process) }
	out, err = runBounded(ctx, cmd)
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended well; a program that it started holds its output
	}
	return out, stderr.String(), err
}

func (p Process) command(ctx context.Context, program string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = p.Environ, p.Workdir, drainTimeout
	return cmd
}

func runBounded(ctx context.Context, cmd *exec.Cmd) (string, error) {
	out := &capped{}
	cmd.Stdout = out
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case out.over:
		return "", errOutput
	}
	return out.String(), err
}

// capped keeps no more than mostOutput.
type capped struct {
	strings.Builder

	over bool
}

// Write takes all and keeps what fits.
func (c *capped) Write(b []byte) (int, error) {
	if c.Len()+len(b) > mostOutput {
		c.over = true
		return len(b), nil
	}
	return c.Builder.Write(b)
}
