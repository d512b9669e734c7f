package vercel

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

const (
	stall    = 24 * time.Hour  // a command may be silent for as long as a session lives
	killTime = 5 * time.Second // bounds what is done for a command whose caller is gone
	sigKill  = 9               // the API takes signals by number
	lastText = 4 << 10         // bytes of stderr that are kept for the exit
	// markVariable is in the environment of a command and of all it starts.
	markVariable = "SBX_EXEC"
)

// Exec runs a command in a running session and streams it. Stdin is sent whole,
// as a file, before the command starts. When ctx ends the command is killed with
// all it has started.
func (c *Client) Exec(ctx context.Context, id string, cmd providers.Command) (sandbox.Exit, error) {
	op := "exec " + id
	if cmd.TTY != nil {
		return sandbox.Exit{}, fault.New(fault.KindUnsupported, "the API gives a command no terminal").At(c.name, op).WithHint("leave out -t")
	}
	v, err := c.resolve(ctx, "exec", id)
	switch {
	case err != nil:
		return sandbox.Exit{}, err
	case v.session.Status != "running":
		return sandbox.Exit{}, fault.New(fault.KindRefused, "its session is %s, and a command would need a new one", v.session.Status).At(c.name, op)
	}
	r := &command{c: c, id: v.session.ID, cwd: v.session.Cwd, cmd: cmd, mark: "exec-" + strings.ToLower(rand.Text()[:12])}
	return r.do(ctx)
}

// shellOf is a guest.Shell for one session.
func (c *Client) shellOf(id string) guest.Shell {
	return func(ctx context.Context, text string) ([]byte, int, error) { return c.shell(ctx, id, text, nil) }
}

func (c *Client) shell(ctx context.Context, id, text string, env []string) ([]byte, int, error) {
	var out bytes.Buffer
	r := &command{c: c, id: id, mark: "probe-" + strings.ToLower(rand.Text()[:12])}
	r.cmd = providers.Command{Args: []string{"sh", "-c", text}, Env: env, Stdout: &out, Stderr: io.Discard}
	exit, err := r.do(ctx)
	if exit.Code == nil {
		return out.Bytes(), -1, err
	}
	return out.Bytes(), *exit.Code, err
}

// command is one command of a session.
type command struct {
	c    *Client
	id   string // of the session
	cwd  string
	cmd  providers.Command
	mark string

	cmdID string
	code  *int
	last  []byte // of stderr
}

func (r *command) op() string { return "exec " + r.id }

func (r *command) do(ctx context.Context) (sandbox.Exit, error) {
	env := guest.Environment(r.cmd.Env)
	env[markVariable] = r.mark
	body := wireRun{Command: r.cmd.Args[0], Args: append([]string{}, r.cmd.Args[1:]...), Cwd: r.cmd.Workdir, Env: env, Wait: true, Logs: true}
	if r.cmd.Stdin != nil {
		file, err := r.upload(ctx)
		if err != nil {
			return sandbox.Exit{}, err
		}
		body.Command, body.Args = "sh", []string{"-c", "f=" + guest.Quote(file) + "; exec < \"$f\"; rm -f \"$f\"; exec \"$@\"", "sh"}
		body.Args = append(body.Args, r.cmd.Args...)
	}
	s, err := r.c.http.Stream(ctx, httpx.Request{
		Op: r.op(), Method: http.MethodPost, Path: session(r.id, "cmd"), Query: r.c.scoped(), JSON: body, Header: http.Header{"Accept": {"application/x-ndjson"}},
	})
	if err != nil {
		return sandbox.Exit{}, r.c.stopped(err)
	}
	defer func() { _ = s.Body.Close() }()
	err = lines(s.Body, r.take)
	switch {
	case ctx.Err() != nil:
		r.kill(ctx)
		return sandbox.Exit{}, &fault.Error{Kind: fault.KindOf(ctx.Err()), Provider: r.c.name, Op: r.op(), Err: context.Cause(ctx)}
	case err == nil && r.code == nil:
		err = errEarly
	}
	if err != nil {
		return r.lost(ctx, err)
	}
	return r.exit()
}

// stopped turns the 410 of a session that is over into what to do.
func (c *Client) stopped(err error) error {
	if fault.KindOf(err) == fault.KindGone {
		return fault.New(fault.KindGone, "%w", err).WithHint("its session has ended: make a new sandbox")
	}
	return err
}

func (r *command) take(l wireLine) error {
	if l.Command != nil {
		r.cmdID, r.code = l.Command.ID, l.Command.ExitCode
		return nil
	}
	text, ok := l.text()
	if !ok {
		return nil
	}
	to := r.cmd.Stdout
	if l.Stream == "stderr" {
		to = r.cmd.Stderr
		r.last = append(r.last, text...)
		r.last = r.last[max(0, len(r.last)-lastText):]
	}
	if to == nil {
		return nil
	}
	_, err := io.WriteString(to, text)
	return err
}

// exit says how the command ended. 137 may be a kill of anybody's, and no more is
// said.
func (r *command) exit() (sandbox.Exit, error) {
	f := triage.ExitFacts{Raw: strconv.Itoa(*r.code), At: r.c.now(), Source: "API"}
	if len(r.last) > 0 {
		f.Lines = strings.Split(strings.TrimRight(string(r.last), "\n"), "\n")
	}
	exit := triage.ClassifyExit(triage.NewMatcher(), f)
	said := strings.ToLower(string(r.last))
	switch program := r.cmd.Args[0]; {
	case *r.code == 127 && (strings.Contains(said, "no such file") || strings.Contains(said, "not found")) && !strings.HasSuffix(program, "sh"):
		return exit, fault.New(fault.KindCommandNotFound, "there is no program %q in it", program).At(r.c.name, r.op())
	case *r.code == 126 && strings.Contains(said, "permission denied"):
		return exit, fault.New(fault.KindNotExecutable, "%q may not be run", program).At(r.c.name, r.op())
	}
	return exit, nil
}

// lost is the end of a stream without the command's: the session's status tells
// whether the VM died or the connection.
func (r *command) lost(ctx context.Context, err error) (sandbox.Exit, error) {
	exit := sandbox.Exit{
		Raw: "lost stream", Class: sandbox.ClassTransport, Cause: sandbox.CauseUnknown, Confidence: sandbox.ConfidenceUnknown,
		Evidence: []sandbox.Evidence{{What: "stream", Value: err.Error(), Source: "API", At: r.c.now()}},
	}
	v, looked := r.c.resolve(ctx, "exec", r.id)
	inBand, told := errors.AsType[failure](err)
	if looked == nil && v.session.over() || fault.KindOf(looked) == fault.KindGone || told && inBand.Code == "sandbox_stopped" {
		exit.Class = sandbox.ClassGone
		return exit, fault.New(fault.KindGone, "the session ended while the command ran").At(r.c.name, r.op()).WithHint("make a new sandbox")
	}
	return exit, fault.New(fault.KindUnavailable, "the connection was lost; the command may run on, and its end was not seen: %w", err).At(r.c.name, r.op()).
		WithHint("`sbx logs %s/%s` shows what it has written", r.c.name, r.id)
}

// kill ends the command and all that carries its mark, for a caller who is gone.
func (r *command) kill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	_, _, _ = r.c.shell(ctx, r.id, guest.KillMarked(markVariable+"="+r.mark), nil) // nobody is left to hear of it
	if r.cmdID != "" {
		_, _ = r.c.http.Do(ctx, httpx.Request{
			Op: r.op(), Method: http.MethodPost, Path: session(r.id, "cmd", r.cmdID, "kill"), Query: r.c.scoped(), JSON: map[string]int{"signal": sigKill},
		})
	}
}

// upload sends stdin as a file of the session's folder and gives its path.
func (r *command) upload(ctx context.Context) (string, error) {
	text, err := io.ReadAll(r.cmd.Stdin)
	if err != nil {
		return "", fault.New(fault.KindUnknown, "stdin: %w", err).At(r.c.name, r.op())
	}
	name := ".sbx-stdin-" + r.mark
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	err = errors.Join(
		archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}),
		func() error { _, err := archive.Write(text); return err }(),
		archive.Close(), zipped.Close(),
	)
	if err != nil {
		return "", fault.New(fault.KindUnknown, "stdin: %w", err).At(r.c.name, r.op())
	}
	_, err = r.c.http.Do(ctx, httpx.Request{
		Op: r.op(), Method: http.MethodPost, Path: session(r.id, "fs", "write"), Query: r.c.scoped(), Body: packed.Bytes(),
		Header: http.Header{"Content-Type": {"application/gzip"}, "X-Cwd": {r.cwd}}, Timeout: createTimeout,
	})
	return strings.TrimRight(r.cwd, "/") + "/" + name, r.c.stopped(err)
}
