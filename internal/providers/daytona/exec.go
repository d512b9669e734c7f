package daytona

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

const (
	stepLimit = 30 * time.Second // of one call to the toolbox, whose texts are short
	killTime  = 5 * time.Second  // bounds what is done for a command whose caller is gone
	pollMin   = 50 * time.Millisecond
	pollMax   = time.Second
	// execOutage is how long nothing may answer before a command is given up: a proxy
	// that is started anew takes some seconds, a daemon that is dead stays so.
	execOutage = 15 * time.Second
	inputPart  = 48 << 10 // bytes of stdin in one call
)

// shellOf is a guest.Shell for one sandbox. look says that it is no activity of
// the sandbox's.
func (c *Client) shellOf(id string, env []string, look bool) guest.Shell {
	return func(ctx context.Context, text string) ([]byte, int, error) {
		var done wireExecuted
		r := httpx.Request{Op: "exec " + id, Method: http.MethodPost, Path: "/process/execute", JSON: wireExecute{Command: text, Envs: guest.Environment(env)}, Timeout: stepLimit}
		_, err := c.http.JSON(ctx, c.toolbox(r, id, look), &done)
		if err != nil {
			return nil, -1, c.inside(err)
		}
		if done.ExitCode == nil {
			return nil, -1, fault.New(fault.KindUnavailable, "the answer has no exit code").At(c.name, "exec "+id).Inside()
		}
		if *done.ExitCode < 0 { // the shell itself was killed, or could not be started
			return nil, -1, fault.New(fault.KindUnavailable, "the shell inside was lost").At(c.name, "exec "+id).Inside()
		}
		return []byte(done.Result), *done.ExitCode, nil
	}
}

// inside says what an error of the toolbox means: a 502 without words is the
// proxy before a daemon that is dead.
func (c *Client) inside(err error) error {
	s := httpx.StatusOf(err)
	switch {
	case s == nil:
		return err
	case s.Status == http.StatusBadGateway && len(s.Body) == 0:
		return fault.New(fault.KindUnavailable, "nothing answers inside: its daemon is dead, or memory ran out: %w", err).
			WithHint("it stays `started` for some minutes: `sbx inspect` says more")
	case s.Status == http.StatusBadRequest && strings.Contains(s.Message, "Is the Sandbox started"):
		return fault.New(fault.KindGone, "it does not run: %w", err)
	}
	return err
}

// Exec runs a command detached and reads what it writes, by offset, until it has
// ended; a connection that breaks meanwhile loses nothing. Stdin is sent whole,
// before the command starts. When ctx ends the command is killed with all it has
// started.
func (c *Client) Exec(ctx context.Context, id string, cmd providers.Command) (sandbox.Exit, error) {
	op := "exec " + id
	if cmd.TTY != nil {
		return sandbox.Exit{}, fault.New(fault.KindUnsupported, "a detached command has no terminal").At(c.name, op).WithHint("leave out -t")
	}
	w, err := c.detail(ctx, "exec", id)
	switch {
	case err != nil:
		return sandbox.Exit{}, err
	case stateOf(w) != sandbox.StateRunning:
		return sandbox.Exit{}, fault.New(fault.KindRefused, "it is %s", w.State).At(c.name, op)
	}
	r := &command{c: c, tag: "exec-" + strings.ToLower(rand.Text()[:12]), cmd: cmd, look: c.shellOf(w.ID, nil, true), act: c.shellOf(w.ID, cmd.Env, false)}
	exit, err := r.do(ctx)
	return exit, fault.Placed(err, c.name, op)
}

// command is one command.
type command struct {
	c    *Client
	tag  string
	cmd  providers.Command
	look guest.Shell // for what only reads
	act  guest.Shell // for the command itself, with its environment
	at   guest.Offsets

	unfit   error // why the caller takes no more output
	dropped int64 // bytes of it that were not kept
	cut     bool  // more could not be written inside
}

func (r *command) do(ctx context.Context) (sandbox.Exit, error) {
	args := r.cmd.Args
	if r.cmd.Stdin != nil {
		file, err := r.feed(ctx)
		if err != nil {
			return sandbox.Exit{}, err
		}
		args = append([]string{"sh", "-c", `f=` + file + `; exec < "$f"; rm -f "$f"; exec "$@"`, "sh"}, args...)
	}
	if err := guest.Start(ctx, r.act, guest.Program{Tag: r.tag, Args: args, Workdir: r.cmd.Workdir, HoldsBack: true}); err != nil {
		switch {
		case ctx.Err() != nil:
			r.kill(ctx)
		case fault.KindOf(err) == fault.KindUnavailable && !httpx.Refused(httpx.Status(err)):
			return r.lost(err) // it may have been started
		}
		return sandbox.Exit{}, err
	}
	last, err := r.watch(ctx)
	switch {
	case ctx.Err() != nil:
		r.kill(ctx)
		return sandbox.Exit{}, &fault.Error{Kind: fault.KindOf(ctx.Err()), Err: context.Cause(ctx)}
	case r.unfit != nil:
		r.kill(ctx)
		return sandbox.Exit{}, fault.New(fault.KindUnknown, "its output cannot be written: %w", r.unfit)
	case err != nil:
		return r.lost(err)
	}
	exit, err := guest.Exit(ctx, r.look, r.tag)
	if err != nil || exit == nil {
		return r.lost(errors.Join(err, guest.ErrOutput))
	}
	r.forget(ctx)
	return r.judge(*exit, last)
}

// watch passes the output on until the end; it gives the end of stderr.
func (r *command) watch(ctx context.Context) ([]byte, error) {
	var last []byte
	answered := time.Now()
	for pause := pollMin; ; {
		o, err := guest.ReadSoFar(ctx, r.look, r.tag, r.at)
		if fault.KindOf(err) == fault.KindUnavailable && time.Since(answered) < execOutage && guest.Wait(ctx, pollMax) == nil {
			continue // the command runs on, and what it writes is kept
		}
		if err != nil {
			return last, err
		}
		answered = time.Now()
		r.at = o.Next
		r.dropped += o.DroppedOut + o.DroppedErr
		r.cut = r.cut || o.Cut
		last = append(last, o.Err...)
		last = last[max(0, len(last)-4096):]
		if r.unfit = errors.Join(write(r.cmd.Stdout, o.Out), write(r.cmd.Stderr, o.Err)); r.unfit != nil {
			return last, r.unfit
		}
		switch {
		case o.More, len(o.Out)+len(o.Err) > 0 && !o.Ended:
			pause = pollMin
		case o.Ended:
			return last, nil
		}
		if o.More {
			continue
		}
		if err := guest.Wait(ctx, pause); err != nil {
			return last, err
		}
		pause = min(2*pause, pollMax)
	}
}

func write(to io.Writer, text []byte) error {
	if to == nil || len(text) == 0 {
		return nil
	}
	_, err := to.Write(text)
	return err
}

// judge keeps the command's own words for what cannot be run.
func (r *command) judge(exit sandbox.Exit, last []byte) (sandbox.Exit, error) {
	if exit.Code == nil {
		return exit, fault.New(fault.KindUnavailable, "nobody saw its end")
	}
	switch {
	case r.dropped > 0:
		return exit, fault.New(fault.KindUnavailable, "it ended with %d, and %d bytes of its output are lost: they were not read in time", *exit.Code, r.dropped).
			WithHint("let it write to a file and fetch that in parts")
	case r.cut:
		return exit, fault.New(fault.KindUnavailable, "it ended with %d, and a part of its output could not be kept: is the disk inside full?", *exit.Code)
	}
	return exit, guest.Refused(*exit.Code, r.cmd.Args[0], string(last))
}

// lost is a command that was started and whose end cannot be read.
func (r *command) lost(err error) (sandbox.Exit, error) {
	f := triage.ExitFacts{Words: exitWords(), Provider: TypeName, StreamLost: true, Gone: fault.KindOf(err) == fault.KindNotFound && !errors.Is(err, guest.ErrNoRun), Source: "toolbox", At: r.c.now()}
	if s := httpx.StatusOf(err); s != nil {
		f.Raw = cmp.Or(s.Code, strconv.Itoa(s.Status))
		if _, known := triage.FindExitWord(f.Words, f.Raw); !known {
			f.Raw = strconv.Itoa(s.Status)
		}
	}
	exit := triage.ClassifyExit(nil, f)
	exit.Raw = cmp.Or(exit.Raw, "lost")
	exit.Evidence = append(exit.Evidence, sandbox.Evidence{What: "toolbox", Value: err.Error(), Source: "toolbox", At: r.c.now()})
	if f.Gone {
		return exit, fault.New(fault.KindGone, "the sandbox ended while the command ran: %w", err)
	}
	return exit, fault.New(fault.KindUnavailable, "the command may run on, and its end was not seen: %w", err).
		WithHint("its output stays in ~/.sbx/runs/%s of the sandbox", r.tag)
}

// feed sends stdin into a file, part by part, and gives the shell's word for it.
func (r *command) feed(ctx context.Context) (string, error) {
	file := `"${HOME:-/tmp}/.sbx-stdin-` + r.tag + `"`
	text := "umask 077; : > " + file
	part := make([]byte, inputPart)
	for {
		if _, code, err := r.act(ctx, text); err != nil || code != 0 {
			return "", errors.Join(err, fault.New(fault.KindUnavailable, "stdin could not be sent"))
		}
		n, err := io.ReadFull(r.cmd.Stdin, part)
		if n == 0 {
			return file, nil
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return "", fault.New(fault.KindUnknown, "stdin: %w", err)
		}
		text = "printf %s " + shellescape.Quote(base64.StdEncoding.EncodeToString(part[:n])) + " | base64 -d >> " + file
	}
}

// kill ends a command and all it has started, for a caller who is gone.
func (r *command) kill(ctx context.Context) {
	ctx, cancel := guest.CleanupContext(ctx, killTime)
	defer cancel()
	_, _, _ = r.look(ctx, guest.Kill(r.tag, 9)) // nobody is left to hear of it
	r.forget(ctx)
}

// forget takes a finished command's files away.
func (r *command) forget(ctx context.Context) {
	_, _, _ = r.look(ctx, `rm -rf "${HOME:-/tmp}/.sbx/runs/`+r.tag+`"`) // they are small, and go with the sandbox
}
