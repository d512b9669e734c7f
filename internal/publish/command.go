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

// commandGrace is how long a publish command has between TERM and KILL.
const commandGrace = 5 * time.Second

// Command is the user's own way to publish: a line of shell that runs on this
// host, after the gate.
type Command struct {
	Line   string // for sh -c
	Task   string // SBX_TASK: an idempotency key for what the line calls
	Fence  int64  // SBX_FENCE: a token that only grows
	Bundle string // SBX_BUNDLE: path of the work as a git bundle, or ""
	Dir    string
	Env    []string      // the environment to start from, KEY=value
	Stdout io.Writer     // nil = nowhere; what it cannot take is lost, and the line goes on
	Stderr io.Writer     // likewise
	Grace  time.Duration // between TERM and KILL; 0 = 5 s
}

// Run runs the line to its end and says how it ended; a code other than 0 is no
// error. The end of ctx sends TERM to the whole process group and KILL after
// Grace; the error is then ctx's cause, and the outcome of what the line was
// doing is open. What it leaves in its group in the background is killed.
func (c Command) Run(ctx context.Context) (sandbox.Exit, error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return sandbox.Exit{}, fault.New(fault.KindLauncher, "publish command: %w", err).WithHint("sbx needs a POSIX sh on this host for --publish")
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), shell, "-c", c.Line) // runGroup ends it: whole group, TERM first
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, heedlessly(c.Stdout), heedlessly(c.Stderr)
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

// heedless is a writer whose errors nobody hears of: a full disk or a closed
// terminal is no end of what the line does, and says nothing of what it did.
type heedless struct{ w io.Writer }

func (h heedless) Write(b []byte) (int, error) {
	_, _ = h.w.Write(b)
	return len(b), nil
}

// heedlessly leaves nil as it is: exec knows by that, and by two that are equal, that
// it has to copy nothing, or both in their order.
func heedlessly(w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	return heedless{w}
}
