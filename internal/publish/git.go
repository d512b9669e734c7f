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
	// callLimit bounds one call of git by default: a push of a large bundle over a
	// slow line fits, a hung server does not hold a task for long.
	callLimit = 2 * time.Minute
	// gitGrace is how long git has between TERM and KILL.
	gitGrace = 2 * time.Second
	// mostPrinted bounds in bytes what of git's output is kept.
	mostPrinted = 8 << 20
)

// Git runs the host's git against remotes. It may be used by several goroutines
// at once; each call has a scratch repository of its own.
type Git struct {
	Program string           // "" = git of PATH
	Environ []string         // the operator's environment, KEY=value, of which git gets what it needs
	Dir     string           // where scratch repositories are made; "" = the system's folder for temporary files
	Limit   time.Duration    // of one call of git; 0 = 2 minutes
	Now     func() time.Time // the clock that markers are dated with

	beforePush func() // tests wait here, between the last look of a publish or a stop and its push
}

// call is one run of git.
type call struct {
	dir    string // where it runs, and its repository
	args   []string
	env    []string // beyond the operator's environment
	config []string // settings that go through the environment: other users can read arguments
	stdin  io.Reader
}

// printed is what a call of git printed, and how it ended.
type printed struct {
	out, errors string
	code        int  // -1 when a signal ended it
	cut         bool // the limit or a signal ended it: nobody knows what it did
}

// run runs git once. The error is non-nil only when git could not be started or
// ctx has ended; how git fared is in printed.
func (g *Git) run(ctx context.Context, c call) (printed, error) {
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
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, append(settings(c.dir), c.args...)...) // runGroup ends it
	cmd.Dir, cmd.Stdin, cmd.Env = c.dir, c.stdin, g.environment(c)
	var out, errs limited
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := runGroup(bounded, cmd, gitGrace)
	p := printed{out: out.String(), errors: errs.String()}
	if cmd.ProcessState != nil {
		p.code = cmd.ProcessState.ExitCode()
	}
	var exit *exec.ExitError
	switch {
	case fault.KindOf(err) == fault.KindLauncher:
		return p, fault.New(fault.KindLauncher, "git: %w", err).WithHint("publishing with --push needs git on this host")
	case ctx.Err() != nil && err != nil:
		p.cut = true
		return p, context.Cause(ctx)
	case err != nil && !errors.As(err, &exit):
		p.cut = true // the limit of the call
	}
	p.cut = p.cut || p.code < 0
	return p, nil
}

// settings are what each call of git is told, whatever the operator's own
// configuration says: no hooks, nothing in the background, nothing pushed beyond
// what is named.
func settings(dir string) []string {
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

// limited keeps the first mostPrinted bytes and takes the rest without a word.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), max(0, mostPrinted-l.Len()))])
	return len(p), nil
}
