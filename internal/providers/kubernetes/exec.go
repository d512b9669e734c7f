package kubernetes

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// scriptTimeout is the limit of a script of sbx where its caller sets none.
const scriptTimeout = 30 * time.Second

// wrapScript runs a command: $1 bytes of stdin are assignments, $2 is the mark, $3 the folder, and the rest the
// command. The API has no environment for a command, and its address, with the arguments, is written to audit
// logs.
const wrapScript = `n=$1 m=$2 d=$3; shift 3
[ "$n" = 0 ] || eval "$(dd bs=1 count="$n" 2>/dev/null)"
[ -z "$d" ] || cd -- "$d" || exit 127
[ -z "$m" ] || export ` + guest.MarkVariable + `="$m"
unset n m d
exec "$@"`

// Exec runs a command as `kubectl exec` does, in the main container. The API cannot end it, so when ctx ends a
// script inside kills the command with its child processes.
func (c *Client) Exec(ctx context.Context, id string, cmd providers.Command) (sandbox.Exit, error) {
	op := "exec " + id
	if err := wirekit.CheckCommand(cmd); err != nil {
		return sandbox.Exit{}, fault.Placed(err, c.Profile, op)
	}
	if cmd.TTY != nil && len(cmd.Env) > 0 {
		return sandbox.Exit{}, fault.New(
			fault.KindUnsupported, "a command with a terminal takes no environment here: it would be in the logs of the API",
		).At(c.Profile, op).WithHint("leave out -t, or set the variables in the shell")
	}
	o, err := c.readWithPods(ctx, "exec", id)
	if err != nil {
		return sandbox.Exit{}, err
	}
	at, err := c.placeIn(o, op)
	if err != nil {
		return sandbox.Exit{}, err
	}
	r := &execution{c: c, at: at, op: op, cmd: cmd, mark: strings.ToLower(rand.Text()[:12])}
	exit, err := r.execute(ctx)
	if err != nil && ctx.Err() != nil && r.started {
		err = wirekit.Unended(err, r.kill(ctx), c.Profile, id)
	}
	return exit, fault.Placed(err, c.Profile, op)
}

// place is where commands of a sandbox run.
type place struct{ id, pod, container string }

// placeIn is the main container of an object that runs.
func (c *Client) placeIn(o object, op string) (place, error) {
	_, raw := o.state()
	pod, _ := o.pod()
	if o.Metadata.DeletionTimestamp != nil || !o.podRuns() {
		return place{}, c.Fault(fault.KindRefused, op, "it cannot run a command: it is %s", raw)
	}
	main, _ := o.mainContainer()
	return place{idOf(o.kind, o.Metadata), pod.Metadata.Name, main.Name}, nil
}

// shellIn is a guest.Shell for an object that runs.
func (c *Client) shellIn(o object, op string, env []string) (guest.Shell, error) {
	at, err := c.placeIn(o, op)
	return c.turns.Script(at.id, c.untimedShell(at, env)), err
}

// untimedShell is shellIn that waits for no turn.
func (c *Client) untimedShell(at place, env []string) guest.Shell {
	return c.scriptsIn(at).Shell(env, scriptTimeout)
}

// scriptsIn runs scripts of sbx in one place. They wait for no turn.
func (c *Client) scriptsIn(at place) guest.Command {
	return func(ctx context.Context, cmd providers.Command) (sandbox.Exit, error) {
		r := &execution{c: c, at: at, op: "exec " + at.id, cmd: cmd}
		return r.execute(ctx)
	}
}

type execution struct {
	c    *Client
	at   place
	op   string
	cmd  providers.Command
	mark string // in the environment of a user's command; "" = a script of sbx

	started bool
	tail    wirekit.Tail // of stderr
	end     *wireStatus  // nil = it was not seen
	failed  error        // of the caller's streams
}

// execute runs the command. What its node or its container does not answer says nothing of the API.
func (r *execution) execute(ctx context.Context) (sandbox.Exit, error) {
	exit, err := r.attempt(ctx)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.KindUnavailable && !httpx.NotSent(err) && !errors.Is(err, errRefused) {
		_ = f.Inside()
	}
	return exit, err
}

func (r *execution) attempt(ctx context.Context) (sandbox.Exit, error) {
	err := r.stream(ctx)
	switch {
	case ctx.Err() != nil:
		return sandbox.Exit{}, wirekit.ContextFault(ctx)
	case r.failed != nil:
		return sandbox.Exit{}, errors.Join(fault.New(fault.KindUnknown, "its output cannot be written: %w", r.failed), r.kill(ctx))
	case r.end == nil && !r.started:
		return sandbox.Exit{}, r.refused(ctx, err)
	case r.end == nil:
		return r.lostExit(ctx, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return r.seenExit(ctx)
}

// argv is the command line with what the API has no field for, and what stdin begins with for it.
func (r *execution) argv() (args []string, prelude string) {
	args = guest.TextArgs(r.cmd.Args)
	var b strings.Builder
	for _, word := range r.cmd.Env {
		if key, value, ok := strings.Cut(word, "="); ok {
			b.WriteString("export " + key + "=" + shellescape.Quote(value) + "\n")
		}
	}
	prelude = b.String()
	env := prelude
	if r.cmd.TTY != nil { // no secret, and a terminal would show what stdin begins with
		args = append([]string{"env", "TERM=" + r.cmd.TTY.Term}, args...)
	}
	if r.mark == "" && env == "" {
		return args, ""
	}
	name := "sbx-exec"
	if r.mark == "" {
		name = guest.ScriptName
	}
	return append([]string{"/bin/sh", "-c", wrapScript, name, strconv.Itoa(len(prelude)), r.mark, r.cmd.Workdir}, args...), prelude
}

// seenExit is the exit of a command whose end was seen: a code, or why it could not be run.
func (r *execution) seenExit(ctx context.Context) (sandbox.Exit, error) {
	code, known := r.end.exitCode()
	if !known {
		return sandbox.Exit{}, r.notRun(ctx)
	}
	if r.mark != "" && (code == 126 || code == 127) {
		if err := guest.FindMissing(ctx, r.c.untimedShell(r.at, nil), guest.Program{Args: r.cmd.Args, Workdir: r.cmd.Workdir}); err != nil {
			return sandbox.Exit{}, err
		}
	}
	return triage.ClassifyExit(triage.NewMatcher(), triage.ExitFacts{Raw: strconv.Itoa(code), At: r.c.Now(), Source: "kubelet", Lines: r.tail.Lines()}), nil
}

// exitCode is the code of an end; false where the command has none: it was not run, or its end was not seen.
func (s wireStatus) exitCode() (int, bool) {
	if s.Status == "Success" {
		return 0, true
	}
	for _, cause := range s.Details.Causes {
		if code, err := strconv.Atoi(cause.Message); err == nil && cause.Reason == "ExitCode" {
			return code, true
		}
	}
	return 0, false
}

// notRun is the error of a command that the runtime of the node did not run.
func (r *execution) notRun(ctx context.Context) error {
	said := cmp.Or(r.end.Message, r.end.Reason, "no reason")
	switch {
	case strings.Contains(said, "/bin/sh"):
		return fault.New(fault.KindLauncher, "its image has no /bin/sh, which sbx runs commands with: %s", said)
	case strings.Contains(said, "executable file not found"), strings.Contains(said, "no such file"):
		return fault.New(fault.KindCommandNotFound, "there is no program %q in it", r.cmd.Args[0])
	case strings.Contains(said, "permission denied"):
		return fault.New(fault.KindNotExecutable, "%q is not executable", r.cmd.Args[0])
	}
	return r.refused(ctx, fault.New(fault.KindUnavailable, "the node does not run it: %s", said))
}

// refused is the error of a command that was not started. In a sandbox that has ended that is why.
func (r *execution) refused(ctx context.Context, err error) error {
	if kind := fault.KindOf(err); ctx.Err() == nil &&
		(kind == fault.KindUnavailable || kind == fault.KindUnknown || kind == fault.KindNotFound) && !httpx.NotSent(err) && r.hasEnded(ctx) {
		return fault.New(fault.KindGone, "it has ended: %w", err)
	}
	return err
}

func (r *execution) hasEnded(ctx context.Context) bool {
	now, err := r.c.readWithPods(ctx, "exec", r.at.id)
	state, _ := now.state()
	return wirekit.Missing(err) || err == nil && (state.Ended() || state == sandbox.StateTerminating)
}

// lostExit is the exit of a command that was started and whose end was not seen.
func (r *execution) lostExit(ctx context.Context, err error) (sandbox.Exit, error) {
	return guest.LostExit(&r.c.Base, r.at.id, triage.ExitFacts{Source: "API", Gone: r.hasEnded(ctx)}, r.mark == "", err)
}

func (r *execution) kill(ctx context.Context) error {
	return guest.KillMarked(ctx, r.c.untimedShell(r.at, nil), r.mark)
}
