package process

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"time"
)

const (
	// mostOutput bounds what a helper program may print, in bytes.
	mostOutput = 64 << 10
	// drained is how long the output of a program that has ended may stay open.
	drained = time.Second
)

// errOutput says that a helper program printed more than mostOutput.
var errOutput = errors.New("its output is larger than 64 KiB")

// Output runs a helper program in the environment of this process and gives what
// it prints. It reads nothing and may ask the operator on stderr; it ends with ctx.
func (p Process) Output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = p.Environ, p.Workdir, drained
	out := &capped{}
	cmd.Stdout, cmd.Stderr = out, io.Writer(p.Stderr)
	if p.Stderr.File != nil {
		cmd.Stderr = p.Stderr.File // the terminal itself, for programs that ask there
	}
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
