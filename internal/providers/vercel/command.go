package vercel

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

const (
	stall = 24 * time.Hour // the longest life of a session, in which a command may be silent (Vercel Sandbox documentation, Limits)
	// backstop is how much longer than the caller's limit the limit of the service is, which
	// kills the command even if no other request reaches it.
	backstop   = 2 * time.Second
	sigKill    = 9 // the API takes signals by number
	streamType = "application/x-ndjson"
)

type execution struct {
	c     *Client
	id    string // of the session
	cwd   string
	cmd   providers.Command
	mark  string
	limit time.Duration // of the service; 0 = none
	users bool          // a user's command, which may run for long: it is killed when its caller gives up

	startedAt   time.Time
	described   wireCommand // as the service described it last
	stderr      wirekit.Tail
	writeFailed error // of the caller's streams
}

func (r *execution) op() string { return "exec " + r.id }

func (r *execution) execute(ctx context.Context) (sandbox.Exit, error) {
	if deadline, ok := ctx.Deadline(); ok && r.limit == 0 {
		r.limit = max(0, time.Until(deadline)) + backstop
	}
	body, err := r.requestBody(ctx)
	if err != nil {
		return sandbox.Exit{}, err
	}
	r.startedAt = r.c.Now()
	s, err := r.c.openStream(ctx, httpx.Request{Op: r.op(), Method: http.MethodPost, Path: sessionPath(r.id, "cmd"), JSON: body, OneSandbox: true})
	if err != nil {
		return sandbox.Exit{}, r.startFault(ctx, err)
	}
	defer func() { _ = s.Close() }()
	err = readNDJSON(s, r.handleLine)
	switch {
	case r.described.ExitCode != nil:
		return r.seenExit(ctx)
	case ctx.Err() != nil:
		return sandbox.Exit{}, r.given(ctx, r.c.contextFault(ctx, r.op()))
	case r.writeFailed != nil:
		return sandbox.Exit{}, r.given(ctx, r.c.Fault(fault.KindUnknown, r.op(), "its output cannot be written: %w", r.writeFailed))
	case err == nil:
		err = errEarly
	}
	return r.lostExit(ctx, err)
}

// contextFault is the end of ctx as a fault of the kind of its cause.
func (c *Client) contextFault(ctx context.Context, op string) error {
	cause := context.Cause(ctx)
	kind := fault.KindOf(cause)
	if kind == fault.KindUnknown {
		kind = fault.KindOf(ctx.Err())
	}
	return &fault.Error{Kind: kind, Provider: c.Profile, Op: op, Err: cause}
}

func (r *execution) requestBody(ctx context.Context) (wireRun, error) {
	env := wirekit.Environment(r.cmd.Env)
	env[guest.MarkVariable] = r.mark
	args := guest.TextArgs(r.cmd.Args)
	w := wireRun{
		Command: args[0], Args: append([]string{}, args[1:]...), Cwd: r.cmd.Workdir, Env: env, Wait: true, Logs: true,
		Timeout: r.limit.Milliseconds(),
	}
	if r.cmd.Stdin == nil {
		return w, nil
	}
	file, err := r.uploadStdin(ctx)
	w.Command, w.Args = "/bin/sh", append([]string{"-c", withStdin, "sh", file}, args...)
	return w, err
}

// openStream opens an answer that must be a stream of lines.
func (c *Client) openStream(ctx context.Context, r httpx.Request) (io.ReadCloser, error) {
	r.Query, r.Header = c.teamQuery(), http.Header{"Accept": {streamType}}
	s, err := c.API.Stream(ctx, r)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(s.Header.Get("Content-Type")); kind != streamType {
		_ = s.Body.Close()
		return nil, fault.New(fault.KindUnavailable, "the answer is %q instead of a stream", kind).At(c.Profile, r.Op).
			WithHint("check the url: requests go to %s", c.API.Base())
	}
	return s.Body, nil
}

func (r *execution) handleLine(l wireLine) error {
	if l.Command != nil {
		first := r.described.ID == ""
		if r.described = *l.Command; first { // it may have ended already, and its output follows
			r.described.ExitCode = nil
		}
		return nil
	}
	text, ok := l.outputText()
	if !ok {
		return nil
	}
	r.c.warnAltered(text)
	to := r.cmd.Stdout
	if l.Stream == "stderr" {
		to = r.cmd.Stderr
		r.stderr.Add([]byte(text))
	}
	if to == nil {
		return nil
	}
	_, r.writeFailed = io.WriteString(to, text)
	return r.writeFailed
}

// seenExit is the exit of a command that has ended. A kill by the service's limit, by the
// kernel and by another process all have code 137; only the first one is known by how long
// the command ran.
func (r *execution) seenExit(ctx context.Context) (sandbox.Exit, error) {
	f := triage.ExitFacts{
		Raw: strconv.Itoa(*r.described.ExitCode), At: r.c.Now(), Source: "API", Ran: r.described.DurationMS.duration(), Limit: r.limit,
		Lines: r.stderr.Lines(),
	}
	if f.Ran == 0 {
		f.Ran = f.At.Sub(r.startedAt)
	}
	return triage.ClassifyExit(triage.NewMatcher(), f), fault.Placed(r.notStarted(ctx), r.c.Profile, r.op())
}

// notStarted is why a user's command did not run; nil where it ran. The API answers alike, with 127
// and without a word, for a missing folder and a missing program.
func (r *execution) notStarted(ctx context.Context) error {
	code := *r.described.ExitCode
	if !r.users || code != 126 && code != 127 {
		return nil
	}
	if missing := guest.FindMissing(ctx, r.c.shellOf(r.id, r.cmd.Env), guest.Program{Args: r.cmd.Args, Workdir: r.cmd.Workdir}); missing != nil {
		return missing
	}
	return guest.NotStarted(code, r.cmd.Args[0], r.stderr.String())
}

// startFault is the error of a command whose stream did not begin. The command may run where
// the request could have arrived.
func (r *execution) startFault(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return r.given(ctx, r.c.contextFault(ctx, r.op()))
	case httpx.Status(err) == http.StatusPaymentRequired:
		return r.c.Fault(fault.KindRefused, r.op(), "%w", err).WithHint("the limit of the account's plan is reached")
	case inTransition(err):
		return r.c.Fault(fault.KindUnavailable, r.op(), "%w", err).WithHint("it is changing its state: try again soon")
	case httpx.Status(err) == 0 && !httpx.NotSent(err):
		return r.c.Fault(fault.KindOf(err), r.op(), "%w; the command may run anyway", err).
			WithHint("`sbx logs %s/%s` shows its output", r.c.Profile, r.id)
	}
	return r.c.withGoneHint(err, "create a new sandbox; sbx does not resume one, since that starts a VM")
}

// withGoneHint adds a hint to the 410 of a session that has ended.
func (c *Client) withGoneHint(err error, hint string) error {
	if fault.KindOf(err) != fault.KindGone || fault.HintOf(err) != "" {
		return err
	}
	return &fault.Error{Kind: fault.KindGone, Provider: c.Profile, Hint: hint, Err: err}
}

// lostExit is the exit of a command whose stream ended before it did: the session's status
// shows whether the VM ended or the connection was lost.
func (r *execution) lostExit(ctx context.Context, err error) (sandbox.Exit, error) {
	if errors.Is(err, errLong) {
		return sandbox.Exit{}, r.given(ctx, r.c.Fault(fault.KindRefused, r.op(), "its output cannot be read, so it was killed: %w", err).
			WithHint("write it to a file and read that in parts"))
	}
	f := triage.ExitFacts{Words: exitWords(), Provider: TypeName, StreamLost: true, At: r.c.Now(), Source: "API"}
	if reported, ok := errors.AsType[streamError](err); ok {
		f.Raw = reported.Code
	}
	var one wireOneSession
	failed := r.c.getObject(ctx, r.op(), sessionPath(r.id), &one)
	gone := wirekit.Missing(failed) || f.Raw == "sandbox_stopped"
	if failed == nil && sessionEnded(one.Session.Status) {
		gone, f.Raw, f.At = true, one.Session.Status, one.Session.endTime()
		f.Ran, f.Limit = one.Session.limitReached()
	}
	exit := triage.ClassifyExit(nil, f)
	exit.Raw = cmp.Or(exit.Raw, "lost stream")
	exit.Evidence = append(exit.Evidence, r.c.Evidence("stream", err.Error(), "API"))
	if gone {
		return exit, r.c.Fault(fault.KindGone, r.op(), "the session ended while the command ran").
			WithHint("create a new sandbox; `sbx inspect %s/%s` may show why it ended", r.c.Profile, r.id)
	}
	return exit, r.c.Fault(fault.KindUnavailable, r.op(), "the connection was lost; the command may still run, its end is unknown: %w", err).
		WithHint("`sbx logs %s/%s` shows its output", r.c.Profile, r.id)
}

// kill ends the command and all processes with its mark in two ways at once: by a script
// inside that finds them, and by the service's signal to the command alone. Its caller has
// given up, so a failure starts no further cleanup; it is the error.
func (r *execution) kill(ctx context.Context) (err error) {
	if !r.users {
		return nil
	}
	ctx, cancel := wirekit.CleanupContext(ctx)
	defer cancel()
	k := &execution{c: r.c, id: r.id, mark: newMark("kill"), limit: wirekit.CleanupLimit}
	k.cmd.Args = guest.Argv(guest.ScriptName, guest.KillMarkedScript(guest.MarkVariable+"="+r.mark))
	body, err := k.requestBody(ctx)
	if err != nil {
		return err
	}
	var both sync.WaitGroup
	both.Go(func() {
		var s io.ReadCloser
		if s, err = r.c.openStream(ctx, httpx.Request{Op: r.op(), Method: http.MethodPost, Path: sessionPath(r.id, "cmd"), JSON: body, OneSandbox: true}); err == nil {
			err = readNDJSON(s, func(wireLine) error { return nil })
			_ = s.Close()
		}
	})
	if r.described.ID != "" {
		both.Go(func() {
			_, _ = r.c.API.Do(ctx, httpx.Request{
				Op: r.op(), Method: http.MethodPost, Path: sessionPath(r.id, "cmd", r.described.ID, "kill"), Query: r.c.teamQuery(), JSON: wireKill{sigKill},
			})
		})
	}
	both.Wait()
	return err
}

// given kills a command that was given up with err. The API's signal does not reach its child processes, so only
// the script confirms that nothing of it runs.
func (r *execution) given(ctx context.Context, err error) error {
	return wirekit.Unended(err, r.kill(ctx), r.c.Profile, r.id)
}
