package vercel

import (
	"context"
	"io"
	"mime"
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
	stall    = 24 * time.Hour  // a command may be silent for as long as a session lives (Vercel Sandbox documentation, Limits)
	killTime = 5 * time.Second // bounds what is done for a command whose caller is gone
	// backstop is how much later than the caller's the service's own limit is, which
	// kills the command even if nothing else reaches it.
	backstop = 2 * time.Second
	sigKill  = 9       // the API takes signals by number
	lastText = 4 << 10 // bytes of stderr that are kept for the exit
	// markVariable is in the environment of a command and of all it starts.
	markVariable = "SBX_EXEC"
	streamType   = "application/x-ndjson"
)

// command is one command of a session.
type command struct {
	c     *Client
	id    string // of the session
	cwd   string
	cmd   providers.Command
	mark  string
	limit time.Duration // that the service is told; 0 = none
	users bool          // a user's command, which may run for long: it is killed with its caller

	begun time.Time
	seen  wireCommand // as the service described it last
	last  []byte      // of stderr
	unfit error       // why the caller takes no more output
}

func (r *command) op() string { return "exec " + r.id }

func (r *command) do(ctx context.Context) (sandbox.Exit, error) {
	if deadline, ok := ctx.Deadline(); ok && r.limit == 0 {
		r.limit = max(0, time.Until(deadline)) + backstop
	}
	body, err := r.body(ctx)
	if err != nil {
		return sandbox.Exit{}, err
	}
	r.begun = r.c.now()
	s, err := r.c.stream(ctx, httpx.Request{Op: r.op(), Method: http.MethodPost, Path: session(r.id, "cmd"), JSON: body, OneSandbox: true})
	if err != nil {
		return sandbox.Exit{}, r.refused(ctx, err)
	}
	defer func() { _ = s.Close() }()
	err = lines(s, r.take)
	switch {
	case r.seen.ExitCode != nil:
		return r.exit(ctx)
	case ctx.Err() != nil:
		r.kill(ctx)
		return sandbox.Exit{}, r.c.over(ctx, r.op())
	case r.unfit != nil:
		r.kill(ctx)
		return sandbox.Exit{}, fault.New(fault.KindUnknown, "its output cannot be written: %w", r.unfit).At(r.c.name, r.op())
	case err == nil:
		err = errEarly
	}
	return r.lost(ctx, err)
}

// over is the end of the caller's ctx as a fault.
func (c *Client) over(ctx context.Context, op string) error {
	cause := context.Cause(ctx)
	kind := fault.KindOf(cause)
	if kind == fault.KindUnknown {
		kind = fault.KindOf(ctx.Err())
	}
	return &fault.Error{Kind: kind, Provider: c.name, Op: op, Err: cause}
}

func (r *command) body(ctx context.Context) (wireRun, error) {
	env := guest.Environment(r.cmd.Env)
	env[markVariable] = r.mark
	w := wireRun{
		Command: r.cmd.Args[0], Args: append([]string{}, r.cmd.Args[1:]...), Cwd: r.cmd.Workdir, Env: env, Wait: true, Logs: true,
		Timeout: r.limit.Milliseconds(),
	}
	if r.cmd.Stdin == nil {
		return w, nil
	}
	file, err := r.upload(ctx)
	w.Command, w.Args = "sh", append([]string{"-c", withStdin, "sh", file}, r.cmd.Args...)
	return w, err
}

// stream opens an answer that is a stream of lines; what is not is no answer.
func (c *Client) stream(ctx context.Context, r httpx.Request) (io.ReadCloser, error) {
	r.Query, r.Header = c.scoped(), http.Header{"Accept": {streamType}}
	s, err := c.http.Stream(ctx, r)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(s.Header.Get("Content-Type")); kind != streamType {
		_ = s.Body.Close()
		return nil, fault.New(fault.KindUnavailable, "a stream was asked for, and %q came", kind).At(c.name, r.Op).
			WithHint("is the url right? requests go to %s", c.http.Base())
	}
	return s.Body, nil
}

func (r *command) take(l wireLine) error {
	if l.Command != nil {
		r.seen = *l.Command
		return nil
	}
	text, ok := l.text()
	if !ok {
		return nil
	}
	r.c.warnAltered(text)
	to := r.cmd.Stdout
	if l.Stream == "stderr" {
		to = r.cmd.Stderr
		r.last = append(r.last, text...)
		r.last = r.last[max(0, len(r.last)-lastText):]
	}
	if to == nil {
		return nil
	}
	_, r.unfit = io.WriteString(to, text)
	return r.unfit
}

// exit says how the command ended. A kill by the service's own limit, by the kernel
// and by anybody all show as 137; how long it ran tells the first one apart.
func (r *command) exit(ctx context.Context) (sandbox.Exit, error) {
	f := triage.ExitFacts{Raw: strconv.Itoa(*r.seen.ExitCode), At: r.c.now(), Source: "API", Ran: r.seen.DurationMS.duration(), Limit: r.limit}
	if f.Ran == 0 {
		f.Ran = f.At.Sub(r.begun)
	}
	if len(r.last) > 0 {
		f.Lines = strings.Split(strings.TrimRight(string(r.last), "\n"), "\n")
	}
	refused := guest.Refused(*r.seen.ExitCode, r.cmd.Args[0], string(r.last))
	if refused != nil && r.noWorkdir(ctx) {
		refused = fault.New(fault.KindLauncher, "there is no folder %q in it", r.cmd.Workdir).WithHint("name an existing folder with --workdir")
	}
	return triage.ClassifyExit(triage.NewMatcher(), f), fault.Placed(refused, r.c.name, r.op())
}

// noWorkdir looks whether the folder is missing in which the command was to run: the API
// answers that as it answers a missing program.
func (r *command) noWorkdir(ctx context.Context) bool {
	if r.cmd.Workdir == "" {
		return false
	}
	_, code, err := r.c.shell(ctx, r.id, "test -d "+shellescape.Quote(r.cmd.Workdir), nil)
	return err == nil && code == 1
}
