package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

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

// Exec runs a command as `docker exec` does. The API cannot end it, so when ctx ends a script inside kills
// the command with its child processes.
func (c *Client) Exec(ctx context.Context, id string, cmd providers.Command) (sandbox.Exit, error) {
	op := "exec " + id
	if err := wirekit.CheckCommand(cmd); err != nil {
		return sandbox.Exit{}, fault.Placed(err, c.Profile, op)
	}
	r := &execution{c: c, id: id, op: op, cmd: cmd, mark: strings.ToLower(rand.Text()[:12])}
	exit, err := r.execute(ctx)
	if err != nil && ctx.Err() != nil && r.exec != "" {
		err = wirekit.Unended(err, r.kill(ctx), c.Profile, id)
	}
	return exit, fault.Placed(err, c.Profile, op)
}

// shellOf is a guest.Shell for one container.
func (c *Client) shellOf(id string, env []string) guest.Shell {
	return c.turns.Script(id, c.untimedShell(id, env))
}

// untimedShell is shellOf that waits for no turn.
func (c *Client) untimedShell(id string, env []string) guest.Shell {
	return c.scriptsOf(id).Shell(env, scriptTimeout)
}

// scriptsOf runs scripts of sbx in one container. They wait for no turn.
func (c *Client) scriptsOf(id string) guest.Command {
	return func(ctx context.Context, cmd providers.Command) (sandbox.Exit, error) {
		r := &execution{c: c, id: id, op: "exec " + id, cmd: cmd}
		return r.execute(ctx)
	}
}

type execution struct {
	c    *Client
	id   string
	op   string
	cmd  providers.Command
	mark string // in the environment of a user's command; "" = a script of sbx

	exec   string       // the engine's id of the command; "" before it is made
	tail   wirekit.Tail // of both streams: the engine's own words come in place of output
	heard  wirekit.Pulse
	failed error // of the caller's streams
}

func (r *execution) execute(ctx context.Context) (sandbox.Exit, error) {
	if err := r.create(ctx); err != nil {
		return sandbox.Exit{}, err
	}
	streamed := r.stream(ctx)
	switch {
	case httpx.NotSent(streamed) || httpx.Refused(httpx.Status(streamed)): // it was not started
		return sandbox.Exit{}, r.refused(ctx, streamed)
	case ctx.Err() != nil:
		return sandbox.Exit{}, wirekit.ContextFault(ctx)
	case r.failed != nil:
		return sandbox.Exit{}, errors.Join(fault.New(fault.KindUnknown, "its output cannot be written: %w", r.failed), r.kill(ctx))
	}
	w, err := r.inspect(ctx)
	switch {
	case err == nil && w.neverRan() && (streamed != nil || r.tail.String() == ""): // what the engine said of it was lost
		if missing := guest.FindMissing(ctx, r.c.shellOf(r.id, r.cmd.Env), guest.Program{Args: r.cmd.Args, Workdir: r.cmd.Workdir}); missing != nil {
			return sandbox.Exit{}, missing
		}
		return sandbox.Exit{}, fault.New(fault.KindLauncher, "it was not started, and the reason was lost")
	case streamed != nil || err != nil:
		return r.lostExit(ctx, cmp.Or(streamed, err))
	case w.Running: // the stream has ended before the command: it has closed its output
		if w, err = r.await(ctx); err != nil {
			return r.lostExit(ctx, err)
		}
	}
	return r.seenExit(w)
}

func (r *execution) create(ctx context.Context) error {
	env := r.cmd.Env
	if r.mark != "" {
		env = append(append([]string(nil), env...), guest.MarkVariable+"="+r.mark)
	}
	body := wireExecConfig{
		AttachStdin: r.cmd.Stdin != nil, AttachStdout: true, AttachStderr: true, Tty: r.cmd.TTY != nil,
		Cmd: guest.TextArgs(r.cmd.Args), Env: env, WorkingDir: r.cmd.Workdir,
	}
	if r.cmd.TTY != nil {
		body.Env = append(body.Env, "TERM="+r.cmd.TTY.Term)
	}
	var made wireCreated
	err := r.c.json(ctx, httpx.Request{Op: r.op, Method: http.MethodPost, Path: httpx.Path("containers", r.id, "exec"), JSON: body, Again: true}, &made)
	if err == nil && made.ID == "" {
		return fault.New(fault.KindUnavailable, "the answer names no command")
	}
	if r.exec = made.ID; r.mark == "" && made.ID != "" {
		r.c.over.Store(made.ID, true)
	}
	return r.refused(ctx, err)
}

// refused says of an error that the container takes no commands, as it does to a create or a start: what a script of
// sbx asks about may have ended between the two.
func (r *execution) refused(ctx context.Context, err error) error {
	s := httpx.StatusOf(err)
	if s == nil || s.Status != http.StatusConflict && !strings.Contains(s.Message, improperState) {
		return err
	}
	kind := fault.KindRefused
	if r.mark == "" && (strings.Contains(s.Message, "not running") || r.hasStopped(ctx, s)) {
		kind = fault.KindGone
	}
	return fault.New(kind, "it cannot run a command: %w", err)
}

// improperState is in the answer of Podman, a 500, to whom a container does not run, be it paused or stopped.
const improperState = "container state improper"

// hasStopped says that the record agrees with such an answer: the container is not paused.
func (r *execution) hasStopped(ctx context.Context, s *httpx.StatusError) bool {
	if !strings.Contains(s.Message, improperState) {
		return false
	}
	w, err := r.c.inspect(ctx, r.op, r.id)
	return err == nil && stateOf(w.State.Status) == sandbox.StateStopped
}

// stream starts the command and copies its streams until the engine ends them.
func (r *execution) stream(ctx context.Context) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := r.c.request(inner, httpx.Request{
		Op: r.op, Method: http.MethodPost, Path: httpx.Path("exec", r.exec, "start"), JSON: wireExecStart{Tty: r.cmd.TTY != nil}, Upgrade: "tcp", Quiet: true,
	})
	if err != nil {
		return err
	}
	s, err := r.c.API.Stream(inner, request)
	if err != nil {
		return err
	}
	defer func() { _ = s.Body.Close() }()
	r.heard.Beat()
	go r.heard.Watch(inner, r.goesOn, cancel)
	if r.cmd.Stdin != nil && s.Input != nil {
		go func() { // the command may end before its stdin
			_, _ = io.Copy(s.Input, r.cmd.Stdin)
			_ = s.Input.CloseWrite()
		}()
	}
	if r.cmd.TTY != nil {
		go r.sendSizes(inner)
	}
	if r.cmd.TTY != nil {
		_, err = io.Copy(writerFunc(func(p []byte) (int, error) { return len(p), r.write(r.cmd.Stdout, p) }), s.Body)
	} else {
		err = eachFrame(s.Body, func(stream byte, text []byte) error {
			if stream == streamStderr {
				return r.write(r.cmd.Stderr, text)
			}
			return r.write(r.cmd.Stdout, text)
		})
	}
	if cause := context.Cause(inner); cause != nil && ctx.Err() == nil {
		return cause
	}
	return err
}

// write passes output on to one of the caller's streams.
func (r *execution) write(to io.Writer, text []byte) error {
	r.heard.Beat()
	r.tail.Add(text)
	if to == nil {
		return nil
	}
	_, r.failed = to.Write(text)
	return r.failed
}

type writerFunc func(p []byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (r *execution) goesOn(ctx context.Context) (bool, error) {
	w, err := r.inspect(ctx)
	return w.Running, err
}

func (r *execution) inspect(ctx context.Context) (wireExec, error) {
	var w wireExec
	err := r.c.json(ctx, httpx.Request{Op: r.op, Path: httpx.Path("exec", r.exec, "json")}, &w)
	if err == nil {
		err = providers.CheckAnswerID(r.c.Profile, r.op, r.exec, w.ID)
	}
	return w, err
}

// await waits for the end of a command that has closed its output.
func (r *execution) await(ctx context.Context) (wireExec, error) {
	pauses := newPauses()
	for {
		if pauses.Sleep(ctx) != nil {
			return wireExec{}, wirekit.ContextFault(ctx)
		}
		if w, err := r.inspect(ctx); err != nil || !w.Running {
			return w, err
		}
	}
}

// neverRan says that the engine could not start the command.
func (w wireExec) neverRan() bool {
	return !w.Running && w.Pid == 0 && w.ExitCode != nil && (*w.ExitCode == 126 || *w.ExitCode == 127)
}

// seenExit is the exit of a command that has ended. What could not be started has code 126 or 127, and a
// text of the engine in place of output.
func (r *execution) seenExit(w wireExec) (sandbox.Exit, error) {
	if w.ExitCode == nil {
		return sandbox.Exit{}, fault.New(fault.KindUnavailable, "the answer has no exit code")
	}
	code, said := *w.ExitCode, r.tail.String()
	if w.neverRan() && strings.Contains(said, "exec failed") {
		switch {
		case r.cmd.Workdir != "" && strings.Contains(said, "cwd"):
			return sandbox.Exit{}, guest.NoFolder(r.cmd.Workdir)
		case strings.Contains(said, "permission denied"):
			return sandbox.Exit{}, fault.New(fault.KindNotExecutable, "%q is not executable", r.cmd.Args[0])
		case strings.Contains(said, "not found") || strings.Contains(said, "no such file"):
			return sandbox.Exit{}, fault.New(fault.KindCommandNotFound, "there is no program %q in it", r.cmd.Args[0])
		}
		return sandbox.Exit{}, fault.New(fault.KindLauncher, "%s", strings.TrimSpace(said))
	}
	exit := triage.ClassifyExit(triage.NewMatcher(), triage.ExitFacts{Raw: strconv.Itoa(code), At: r.c.Now(), Source: "engine", Lines: r.tail.Lines()})
	return exit, guest.NotStarted(code, r.cmd.Args[0], said)
}

// lostExit is the exit of a command that was started and whose end was not seen.
func (r *execution) lostExit(ctx context.Context, err error) (sandbox.Exit, error) {
	if ctx.Err() != nil {
		return sandbox.Exit{}, wirekit.ContextFault(ctx)
	}
	now, failed := r.c.inspect(ctx, "exec", r.id)
	gone := wirekit.Missing(failed) || failed == nil && !now.State.Running
	return guest.LostExit(&r.c.Base, r.id, triage.ExitFacts{Source: "engine", Gone: gone}, r.mark == "", err)
}

func (r *execution) kill(ctx context.Context) error {
	return guest.KillMarked(ctx, r.c.untimedShell(r.id, nil), r.mark)
}

func (r *execution) sendSizes(ctx context.Context) {
	send := func(size providers.Size) {
		_ = r.c.send(ctx, httpx.Request{ // see EachSize
			Op: r.op, Method: http.MethodPost, Path: httpx.Path("exec", r.exec, "resize"),
			Query: url.Values{"h": {strconv.Itoa(int(size.Rows))}, "w": {strconv.Itoa(int(size.Columns))}},
		})
	}
	send(r.cmd.TTY.Size)
	wirekit.EachSize(ctx, r.cmd.TTY, send)
}
