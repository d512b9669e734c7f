package e2b

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
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
	// stall is how long a command's stream may bring nothing, not even the sign of
	// life that envd is asked for each 20 s.
	stall     = 60 * time.Second
	pingEvery = "20" // seconds
	// killTime bounds what ends a command. backstop is how much later than the
	// caller's the limit is that envd is told, which kills the command even if no
	// request reaches it any more.
	killTime = 5 * time.Second
	backstop = 2 * time.Second
	// markVariable is in the environment of a command and of all it starts.
	markVariable = "SBX_EXEC"
	userMark     = "exec-"
	lookMark     = "look-" // of what sbx asks inside for itself: no program of the sandbox
)

// Exec runs a command through envd. When ctx ends the command is killed with all
// it has started: envd lets it run on when its client leaves.
func (c *Client) Exec(ctx context.Context, id string, cmd providers.Command) (sandbox.Exit, error) {
	r, err := c.command(ctx, id, cmd)
	if err != nil {
		return sandbox.Exit{}, err
	}
	r.users, r.mark = true, userMark+strings.TrimPrefix(r.mark, lookMark)
	return r.do(ctx)
}

// command prepares a command in a sandbox that runs.
func (c *Client) command(ctx context.Context, id string, cmd providers.Command) (*run, error) {
	w, err := c.detail(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case w.State != "running":
		return nil, fault.New(fault.KindRefused, "it is %s, and a command would wake it", w.State).At(c.name, "exec "+id)
	}
	r := &run{c: c, id: id, token: w.EnvdAccessToken, mark: lookMark + strings.ToLower(rand.Text()[:12]), cmd: cmd}
	r.again = cmd.Stderr != nil && cmd.Stderr != io.Discard // where a gap can be told
	return r, nil
}

// shellOf is a guest.Shell for one sandbox.
func (c *Client) shellOf(id string) guest.Shell {
	return func(ctx context.Context, text string) ([]byte, int, error) { return c.shell(ctx, id, text, nil) }
}

// shell runs a text of sbx's own. It ends by itself soon, so nobody kills it when
// its caller leaves.
func (c *Client) shell(ctx context.Context, id, text string, env []string) ([]byte, int, error) {
	var out bytes.Buffer
	r, err := c.command(ctx, id, providers.Command{Args: []string{"/bin/sh", "-c", text}, Env: env, Stdout: &out, Stderr: io.Discard})
	if err != nil {
		return nil, -1, err
	}
	exit, err := r.do(ctx)
	if exit.Code == nil {
		return out.Bytes(), -1, err
	}
	return out.Bytes(), *exit.Code, err
}

// run is one command.
type run struct {
	c     *Client
	id    string
	token string
	mark  string
	cmd   providers.Command

	pid  uint32
	end  *wireEnd
	last tail // of stderr

	users   bool // a user's command, which may run for long: it is killed with its caller
	again   bool // look for it again when its stream is lost
	gaps    int
	unfit   error  // why the caller takes no more output
	refused string // the code by which envd ended the stream; "" = it did not
}

func (r *run) do(ctx context.Context) (sandbox.Exit, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	taken, err := r.stream(ctx)
	switch {
	case !taken && ctx.Err() != nil:
		r.kill(ctx)
		return sandbox.Exit{}, err
	case !taken:
		return sandbox.Exit{}, r.unreachable(err)
	case err != nil && r.again:
		err = r.reattach(ctx, err)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		r.kill(ctx)
		return sandbox.Exit{}, err
	case r.unfit != nil:
		r.kill(ctx)
		return sandbox.Exit{}, fault.New(fault.KindUnknown, "its output cannot be written: %w", r.unfit).At(r.c.name, r.op())
	case err != nil:
		return r.lost(ctx, err)
	case r.end == nil:
		return sandbox.Exit{}, fault.New(fault.KindUnavailable, "envd ended the stream without an exit").At(r.c.name, r.op())
	}
	exit, err := r.exit()
	if err == nil && r.gaps > 0 {
		err = fault.New(fault.KindUnavailable, "the connection was lost while it ran: it ended with %s, and what it wrote in between is missing", exit.Raw).At(r.c.name, r.op()).
			WithHint("envd keeps no output: let the command write to a file, or run it again if that does no harm")
	}
	return exit, err
}

// stream starts the command and reads its stream to the end. taken says that envd
// has answered at all. It cleans up nothing.
func (r *run) stream(ctx context.Context) (taken bool, err error) {
	body, err := envelope(r.start())
	if err != nil {
		return false, fault.New(fault.KindUnknown, "%w", err).At(r.c.name, r.op())
	}
	request := r.request("Start", "application/connect+json", body)
	if deadline, ok := ctx.Deadline(); ok {
		limit := max(0, time.Until(deadline)) + backstop
		request.Header.Set("Connect-Timeout-Ms", strconv.FormatInt(limit.Milliseconds(), 10))
	}
	s, err := r.c.hosts.Stream(ctx, request)
	if err != nil {
		return false, err
	}
	defer func() { _ = s.Body.Close() }()
	return true, r.read(ctx, s.Body)
}

func (r *run) op() string { return "exec " + r.id }

func (r *run) start() wireStart {
	env := guest.Environment(r.cmd.Env)
	env[markVariable] = r.mark
	w := wireStart{
		Process: wireProcess{Cmd: r.cmd.Args[0], Args: r.cmd.Args[1:], Envs: env, Cwd: r.cmd.Workdir},
		Tag:     r.mark, Stdin: r.cmd.Stdin != nil,
	}
	if r.cmd.TTY != nil {
		w.PTY = &wirePTY{Size: wireSize{r.cmd.TTY.Size.Columns, r.cmd.TTY.Size.Rows}}
		env["TERM"] = r.cmd.TTY.Term
	}
	return w
}

func (r *run) request(method, content string, body []byte) httpx.Request {
	return r.c.toHost(httpx.Request{
		Op: r.op(), Method: http.MethodPost, Path: "/process.Process/" + method, Body: body,
		Header: http.Header{
			"Content-Type": {content}, "Connect-Protocol-Version": {"1"}, "Keepalive-Ping-Interval": {pingEvery},
			"Authorization": {asUser()},
		},
	}, r.id, r.token)
}

// call makes one unary call to envd.
func (r *run) call(ctx context.Context, method string, message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = r.c.hosts.Do(ctx, r.request(method, "application/json", text))
	return err
}

// read takes frames until the end of the stream; io.EOF or a lost connection
// before it is an error.
func (r *run) read(ctx context.Context, body io.Reader) error {
	for {
		flags, payload, err := readFrame(body)
		if err != nil {
			return err
		}
		if flags&flagEnd != 0 {
			return r.over(payload)
		}
		var f wireFrame
		if err := json.Unmarshal(payload, &f); err != nil {
			return errors.Join(errFrame, err)
		}
		if err := r.take(ctx, f); err != nil {
			return err
		}
	}
}

// take does what one frame says.
func (r *run) take(ctx context.Context, f wireFrame) error {
	switch e := f.Event; {
	case e.Start != nil && r.pid == 0: // told again after a gap
		r.pid = e.Start.PID
		if r.cmd.Stdin != nil {
			go r.feed(ctx)
		}
		if r.cmd.TTY != nil && r.cmd.TTY.Resize != nil {
			go r.resize(ctx)
		}
	case e.Data != nil:
		r.last.Write(e.Data.Stderr)
		for _, s := range []struct {
			to   io.Writer
			text []byte
		}{{r.cmd.Stdout, e.Data.Stdout}, {r.cmd.Stderr, e.Data.Stderr}, {r.cmd.Stdout, e.Data.PTY}} {
			if s.to == nil || len(s.text) == 0 {
				continue
			}
			if _, r.unfit = s.to.Write(s.text); r.unfit != nil {
				return r.unfit
			}
		}
	case e.End != nil:
		r.end = e.End
	}
	return ctx.Err()
}

// over reads the last frame's payload.
func (r *run) over(payload []byte) error {
	var e wireEndOfStream
	if err := json.Unmarshal(payload, &e); err != nil {
		return errors.Join(errFrame, err)
	}
	if e.Error == nil || r.end != nil {
		return nil
	}
	r.refused = e.Error.Code
	text := e.Error.Code + ": " + e.Error.Message
	switch e.Error.Code {
	case "deadline_exceeded":
		return fault.New(fault.KindTimeout, "a time limit inside the sandbox ended it; what it has started may run on").At(r.c.name, r.op())
	case "invalid_argument":
		return fault.Usage("%s", text).At(r.c.name, r.op())
	case "unauthenticated", "permission_denied":
		return fault.New(fault.KindAuth, "%s", text).At(r.c.name, r.op())
	case "not_found":
		return fault.New(fault.KindNotFound, "%s", text).At(r.c.name, r.op())
	}
	return fault.New(fault.KindUnavailable, "%s", text).At(r.c.name, r.op())
}

// exit says how the command ended. -1 stands for any signal; the status names it.
func (r *run) exit() (sandbox.Exit, error) {
	f := triage.ExitFacts{Words: exitWords(), Provider: r.c.dialect.name, Raw: strconv.Itoa(r.end.ExitCode), At: r.c.now(), Source: "envd", Lines: r.last.lines(), Died: sandbox.VerdictOf(!r.end.Exited)}
	if strings.HasPrefix(r.end.Status, "signal:") {
		f.Raw = r.end.Status
	}
	exit := triage.ClassifyExit(triage.NewMatcher(), f)
	if r.gaps > 0 {
		exit.Evidence = append(exit.Evidence, r.c.fact("lost connections", strconv.Itoa(r.gaps), "envd"))
	}
	return exit, fault.Placed(guest.Refused(r.end.ExitCode, r.cmd.Args[0], string(r.last.text)), r.c.name, r.op())
}
