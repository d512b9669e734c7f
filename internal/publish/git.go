package publish

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// scratch is a bare repository for one operation on one remote. It is removed afterwards.
type scratch struct {
	git         *Git
	dir         string
	format      string   // sha1 or sha256
	targetURL   string   // the remote of the target, without credentials
	remote      string   // the same after the operator's URL rewriting, without credentials
	env         []string // how ssh is called
	credentials credentials
}

// openScratch makes a scratch repository for one remote. The caller removes it.
func (g *Git) openScratch(ctx context.Context, t Target) (*scratch, error) {
	if err := t.checkTarget(); err != nil {
		return nil, err
	}
	if addressKindOf(t.Remote) == remoteName {
		return nil, fault.Usage("publish target: %q is the name of a remote, not an address", t.Remote).WithHint("write ./%s for a folder", t.Remote)
	}
	dir, err := os.MkdirTemp(g.Dir, "sbx-publish-")
	if err != nil {
		return nil, fault.New(fault.KindUnknown, "publish: no scratch folder: %w", err)
	}
	remote, given := splitCredentials(t.Remote)
	s := &scratch{git: g, dir: dir, targetURL: remote, credentials: given}
	if err := s.initRepository(ctx, sha1Format); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

func (s *scratch) remove() { _ = os.RemoveAll(s.dir) } // a folder that cannot be removed stays in the temporary folder

func (s *scratch) initRepository(ctx context.Context, format string) error {
	s.format = format
	if _, err := s.runLocal(ctx, "", "init", "--quiet", "--bare", "--template=", "--object-format="+format, "."); err != nil {
		return err
	}
	if err := s.quietSSH(ctx); err != nil {
		return err
	}
	return s.pushAddress(ctx)
}

// quietSSH prevents prompts of ssh, unless the operator configures how ssh is called.
func (s *scratch) quietSSH(ctx context.Context) error {
	_, command := lookUpEnv(s.git.Environ, "GIT_SSH_COMMAND")
	_, program := lookUpEnv(s.git.Environ, "GIT_SSH")
	if command || program {
		return nil
	}
	p, err := s.git.runGit(ctx, gitCall{dir: s.dir, args: []string{"config", "--get", "core.sshCommand"}})
	if err == nil && p.code != 0 {
		s.env = []string{"GIT_SSH_COMMAND=ssh -o BatchMode=yes"}
	}
	return err
}

// pushAddress applies the operator's url.*.insteadOf and pushInsteadOf once, so that reads
// and pushes use the same repository: a mirror that lags behind must not decide a race.
// Credentials that the rewriting adds are taken out and passed like those of the target.
func (s *scratch) pushAddress(ctx context.Context) error {
	if _, err := s.runLocal(ctx, "", "config", "remote.target.url", s.targetURL); err != nil {
		return err
	}
	out, err := s.runLocal(ctx, "", "remote", "get-url", "--push", "target")
	address, _, ok := strings.Cut(out, "\n")
	if err != nil || !ok {
		return err
	}
	remote, given := splitCredentials(address)
	if given == (credentials{}) {
		s.remote = address
		return nil
	}
	s.credentials = given
	return s.pinRemote(ctx, remote)
}

// pinRemote uses an address without credentials as the remote, and prevents git from
// rewriting it again, which would add them. The longest rule wins; one of the operator's
// ends before the slash, which http ignores.
func (s *scratch) pinRemote(ctx context.Context, remote string) error {
	s.remote = strings.TrimSuffix(remote, "/") + "/"
	for _, rule := range []string{".insteadOf", ".pushInsteadOf"} {
		if _, err := s.runLocal(ctx, "", "config", "url."+s.remote+rule, s.remote); err != nil {
			return err
		}
	}
	return nil
}

// runLocal runs git without the remote and returns its output. A failure is a fault of the
// host.
func (s *scratch) runLocal(ctx context.Context, stdin string, args ...string) (string, error) {
	p, err := s.git.runGit(ctx, gitCall{dir: s.dir, args: args, stdin: strings.NewReader(stdin)})
	switch {
	case err != nil:
		return "", err
	case p.cutShort:
		return "", fault.New(fault.KindUnavailable, "git %s was cut short", args[0])
	case p.code != 0:
		return "", fault.New(fault.KindUnknown, "git %s: %s", args[0], s.describeOutput(p))
	}
	return p.out, nil
}

// runRemote runs git against the remote, with the credentials in its environment.
func (s *scratch) runRemote(ctx context.Context, args ...string) (gitOutput, error) {
	config, env := s.credentials.gitSettings()
	return s.git.runGit(ctx, gitCall{dir: s.dir, args: args, env: append(env, s.env...), config: config})
}

// The object formats of repositories.
const (
	sha1Format   = "sha1"
	sha256Format = "sha256"
)

func formatOf(oid string) string {
	if len(oid) == 64 {
		return sha256Format
	}
	return sha1Format
}

// matchFormat makes the scratch repository anew where the remote uses the other object
// format, which shows only when an object id is read.
func (s *scratch) matchFormat(ctx context.Context, oid string) error {
	if format := formatOf(oid); format != s.format {
		return s.recreate(ctx, format)
	}
	return nil
}

// recreate empties the scratch repository and initializes it in another format.
func (s *scratch) recreate(ctx context.Context, format string) error {
	if err := os.RemoveAll(s.dir); err != nil {
		return err
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return err
	}
	return s.initRepository(ctx, format)
}
