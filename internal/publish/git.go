package publish

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"time"

	"sbx/internal/fault"
)

const (
	// callLimit bounds one call of git by default. It is enough for a push of a large
	// bundle over a slow line, and a hung server does not block a task for long.
	callLimit = 2 * time.Minute
	// gitGrace is the time between TERM and KILL.
	gitGrace = 2 * time.Second
	// mostPrinted bounds how many bytes of git's output are kept.
	mostPrinted = 8 << 20
)

// Git runs the host's git against remotes. It may be used concurrently; each call has a
// scratch repository of its own.
type Git struct {
	Program string           // "" = git of PATH
	Environ []string         // the operator's environment, KEY=value, from which git gets what it needs
	Dir     string           // for scratch repositories; "" = the system's temporary folder
	Limit   time.Duration    // of one call of git; 0 = 2 minutes
	Now     func() time.Time // the clock for markers

	beforePush func() // called in tests between the last read of a publish or a stop and its push
}

// gitCall is one run of git.
type gitCall struct {
	dir    string // working directory and repository
	args   []string
	env    []string // added to the operator's environment
	config []string // settings passed through the environment, because other users can read arguments
	stdin  io.Reader
}

// gitOutput is the output and the exit of a run of git.
type gitOutput struct {
	out, errors string
	code        int  // -1 when a signal ended it
	cutShort    bool // the limit or a signal ended it: its effect is unknown
}

// runGit runs git once. It fails only when git could not be started or ctx has ended; the
// exit of git is in the output.
func (g *Git) runGit(ctx context.Context, c gitCall) (gitOutput, error) {
	limit := g.Limit
	if limit <= 0 {
		limit = callLimit
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	program := g.Program
	if program == "" {
		program = "git"
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, append(gitArguments(c.dir), c.args...)...) // runGroup ends it
	cmd.Dir, cmd.Stdin, cmd.Env = c.dir, c.stdin, g.gitEnvironment(c)
	var out, errs cappedBuffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := runGroup(bounded, cmd, gitGrace)
	p := gitOutput{out: out.String(), errors: errs.String()}
	if cmd.ProcessState != nil {
		p.code = cmd.ProcessState.ExitCode()
	}
	var exit *exec.ExitError
	switch {
	case fault.KindOf(err) == fault.KindLauncher:
		return p, fault.New(fault.KindLauncher, "git: %w", err).WithHint("publishing with --push needs git on this host")
	case ctx.Err() != nil && err != nil:
		p.cutShort = true
		return p, context.Cause(ctx)
	case err != nil && !errors.As(err, &exit):
		p.cutShort = true // the limit of the call
	}
	p.cutShort = p.cutShort || p.code < 0
	return p, nil
}

// gitArguments override the operator's configuration in each run of git: no hooks, nothing
// in the background, nothing pushed beyond what is named.
func gitArguments(dir string) []string {
	var args []string
	for _, s := range []string{
		"core.hooksPath=" + filepath.Join(dir, "no-hooks"),
		"gc.auto=0",
		"maintenance.auto=false",
		"push.followTags=false",
		"push.recurseSubmodules=no",
		"fetch.recurseSubmodules=no",
		"core.bigFileThreshold=32m",
		"advice.detachedHead=false",
	} {
		args = append(args, "-c", s)
	}
	return args
}

// cappedBuffer keeps the first mostPrinted bytes and discards the rest.
type cappedBuffer struct{ bytes.Buffer }

func (l *cappedBuffer) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), max(0, mostPrinted-l.Len()))])
	return len(p), nil
}
