package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

const commandGrace = 5 * time.Second

// Command is the operator's own way to publish: a shell line that is run on this host,
// after the gate.
type Command struct {
	Line   string // for sh -c
	Task   string // SBX_TASK: an idempotency key
	Fence  int64  // SBX_FENCE: a token that only grows
	Bundle string // SBX_BUNDLE: path of the work as a git bundle, or ""
	Dir    string
	Env    []string      // the base environment, KEY=value
	Stdout io.Writer     // nil = discarded; write errors are ignored
	Stderr io.Writer     // likewise
	Grace  time.Duration // between TERM and KILL; 0 = 5 s
}

// Run runs the line to its end and returns its exit; a code other than 0 is no error. The
// end of ctx sends TERM to the whole process group and KILL after Grace. The error is then
// ctx's cause, and the effect of the line is unknown. Processes that it leaves in its group
// are killed.
func (c Command) Run(ctx context.Context) (sandbox.Exit, error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return sandbox.Exit{}, fault.New(fault.KindLauncher, "publish command: %w", err).WithHint("sbx needs a POSIX sh on this host for --publish")
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), shell, "-c", c.Line) // runGroup ends it: the whole group, TERM first
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, ignoringErrors(c.Stdout), ignoringErrors(c.Stderr)
	cmd.Env = withEnv(c.Env, "SBX_TASK="+c.Task, "SBX_FENCE="+strconv.FormatInt(c.Fence, 10), "SBX_BUNDLE="+c.Bundle)
	grace := c.Grace
	if grace <= 0 {
		grace = commandGrace
	}
	err = runGroup(ctx, cmd, grace)
	return commandExit(cmd, err)
}

func commandExit(cmd *exec.Cmd, err error) (sandbox.Exit, error) {
	if cmd.ProcessState == nil {
		return sandbox.Exit{}, fmt.Errorf("publish command: %w", err)
	}
	exit := exitOf(cmd.ProcessState)
	var code *exec.ExitError
	if err == nil || errors.As(err, &code) {
		return exit, nil
	}
	return exit, fmt.Errorf("publish command: %w", err)
}

// errorIgnorer is a writer that never fails: a full disk or a closed terminal must not end
// the line, and says nothing about its effect.
type errorIgnorer struct{ w io.Writer }

func (h errorIgnorer) Write(b []byte) (int, error) {
	_, _ = h.w.Write(b)
	return len(b), nil
}

// ignoringErrors keeps nil, and equal writers equal: exec then copies nothing, or both
// streams in order.
func ignoringErrors(w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	return errorIgnorer{w}
}
