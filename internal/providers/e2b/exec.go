package e2b

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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

const (
	// stall is how long the stream of a command may bring nothing, not even the keep-alive
	// that envd is to send every 20 s.
	stall        = 60 * time.Second
	pingInterval = "20" // seconds
	// backstop is how much longer than the caller's limit the limit in envd is, which kills
	// the command even if no other request reaches it.
	backstop   = 2 * time.Second
	userMark   = "exec-"
	scriptMark = "look-" // of the scripts of sbx
)

// Exec runs a command through envd. When ctx ends the command is killed with its child
// processes: envd does not end it when its client disconnects.
func (c *Client) Exec(ctx context.Context, id string, cmd providers.Command) (sandbox.Exit, error) {
	if err := providers.CheckText(nil, cmd.Env); err != nil {
		return sandbox.Exit{}, fault.Placed(err, c.Profile, "exec "+id)
	}
	w, err := c.detail(ctx, id)
	if err != nil {
		return sandbox.Exit{}, err
	}
	r, err := c.newExecution(w, id, cmd)
	if err != nil {
		return sandbox.Exit{}, err
	}
	r.users, r.mark = true, userMark+strings.TrimPrefix(r.mark, scriptMark)
	return r.execute(ctx)
}

// newExecution is a command in the sandbox of this record.
func (c *Client) newExecution(w wireSandbox, id string, cmd providers.Command) (*execution, error) {
	if w.State != "running" {
		return nil, c.Fault(fault.KindRefused, "exec "+id, "it is %s, and a command would wake it", w.State)
	}
	r := &execution{c: c, id: id, token: w.EnvdAccessToken, mark: scriptMark + strings.ToLower(rand.Text()[:12]), cmd: cmd}
	r.canReattach = cmd.Stderr != nil && cmd.Stderr != io.Discard // a gap is reported there
	return r, nil
}

// shellOf is a guest.Shell for one sandbox. A script of sbx ends by itself soon, so it is not killed
// when its caller gives up.
func (c *Client) shellOf(id string, env []string) guest.Shell {
	return c.turns.Script(id, c.untimedShell(id, env))
}

// untimedShell is shellOf that waits for no turn.
func (c *Client) untimedShell(id string, env []string) guest.Shell {
	return func(ctx context.Context, text string) ([]byte, int, error) {
		var out bytes.Buffer
		w, err := c.insideRecord(ctx, id, c.detail)
		if err != nil {
			return nil, -1, err
		}
		r, err := c.newExecution(w, id, providers.Command{Args: guest.Argv(guest.ScriptName, text), Env: env, Stdout: &out, Stderr: io.Discard})
		if err != nil {
			return nil, -1, err
		}
		exit, err := r.execute(ctx)
		if exit.Code == nil {
			return out.Bytes(), -1, err
		}
		return out.Bytes(), *exit.Code, err
	}
}

type execution struct {
	c     *Client
	id    string
	token string
	mark  string
	cmd   providers.Command

	pid    uint32
	end    *wireEnd
	stderr wirekit.Tail

	users       bool // a user's command, which may run for long: it is killed when its caller gives up
	canReattach bool // its stream is opened again when it is lost
	gaps        int
	writeFailed error  // of the caller's streams
	endedBy     string // the error code with which envd ended the stream; "" = none
}

func (r *execution) execute(ctx context.Context) (sandbox.Exit, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	accepted, err := r.runStream(ctx)
	switch {
	case !accepted && ctx.Err() != nil:
		return sandbox.Exit{}, r.given(ctx, err)
	case !accepted:
		return sandbox.Exit{}, r.startFault(err)
	case err != nil && r.canReattach:
		err = r.reattach(ctx, err)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return sandbox.Exit{}, r.given(ctx, err)
	case r.writeFailed != nil:
		return sandbox.Exit{}, r.given(ctx, r.c.Fault(fault.KindUnknown, r.op(), "its output cannot be written: %w", r.writeFailed))
	case err != nil:
		return r.lostExit(ctx, err)
	case r.end == nil:
		return sandbox.Exit{}, r.c.Fault(fault.KindUnavailable, r.op(), "envd ended the stream without an exit")
	}
	exit, err := r.seenExit()
	if err == nil && r.gaps > 0 {
		err = r.c.Fault(fault.KindUnavailable, r.op(), "the connection was lost while it ran: it ended with %s, and some output is missing", exit.Raw).
			WithHint("envd keeps no output: write to a file, or run the command again if that is safe")
	}
	return exit, err
}

// runStream starts the command and reads its stream to the end. accepted says that envd has
// answered. It does no cleanup.
func (r *execution) runStream(ctx context.Context) (accepted bool, err error) {
	body, err := encodeFrame(r.startMessage())
	if err != nil {
		return false, r.c.Fault(fault.KindUnknown, r.op(), "%w", err)
	}
	request := r.newRequest("Start", "application/connect+json", body)
	if deadline, ok := ctx.Deadline(); ok {
		limit := max(0, time.Until(deadline)) + backstop
		request.Header.Set("Connect-Timeout-Ms", strconv.FormatInt(limit.Milliseconds(), 10))
	}
	s, err := r.c.hosts.Stream(ctx, request)
	if err != nil {
		return false, err
	}
	defer func() { _ = s.Body.Close() }()
	return true, r.readFrames(ctx, s.Body)
}

func (r *execution) op() string { return "exec " + r.id }

func (r *execution) startMessage() wireStart {
	env := wirekit.Environment(r.cmd.Env)
	env[guest.MarkVariable] = r.mark
	args := guest.TextArgs(r.cmd.Args)
	w := wireStart{
		Process: wireProcess{Cmd: args[0], Args: args[1:], Envs: env, Cwd: r.cmd.Workdir},
		Tag:     r.mark, Stdin: r.cmd.Stdin != nil,
	}
	if r.cmd.TTY != nil {
		w.PTY = &wirePTY{Size: wireSize{r.cmd.TTY.Size.Columns, r.cmd.TTY.Size.Rows}}
		env["TERM"] = r.cmd.TTY.Term
	}
	return w
}

func (r *execution) newRequest(method, content string, body []byte) httpx.Request {
	return r.c.toHost(httpx.Request{
		Op: r.op(), Method: http.MethodPost, Path: "/process.Process/" + method, Body: body,
		Header: http.Header{
			"Content-Type": {content}, "Connect-Protocol-Version": {"1"}, "Keepalive-Ping-Interval": {pingInterval},
			"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("user:"))}, // the Linux user, which older versions of envd require
		},
	}, r.id, r.token)
}

func (r *execution) callEnvd(ctx context.Context, method string, message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = r.c.hosts.Do(ctx, r.newRequest(method, "application/json", text))
	return err
}

// readFrames reads frames until the end of the stream; io.EOF or a lost connection before the
// end is an error.
func (r *execution) readFrames(ctx context.Context, body io.Reader) error {
	for {
		flags, payload, err := readFrame(body)
		if err != nil {
			return err
		}
		if flags&flagEnd != 0 {
			return r.handleEndOfStream(payload)
		}
		var f wireFrame
		if err := json.Unmarshal(payload, &f); err != nil {
			return fmt.Errorf("%w: %w", errFrame, err)
		}
		if err := r.handleFrame(ctx, f); err != nil {
			return err
		}
	}
}

func (r *execution) handleFrame(ctx context.Context, f wireFrame) error {
	switch e := f.Event; {
	case e.Start != nil && r.pid == 0: // it comes again after a gap
		r.pid = e.Start.PID
		if r.cmd.Stdin != nil {
			go r.sendStdin(ctx)
		}
		if r.cmd.TTY != nil && r.cmd.TTY.Resize != nil {
			go r.sendSizes(ctx)
		}
	case e.Data != nil:
		r.stderr.Add(e.Data.Stderr)
		for _, s := range []struct {
			to   io.Writer
			text []byte
		}{{r.cmd.Stdout, e.Data.Stdout}, {r.cmd.Stderr, e.Data.Stderr}, {r.cmd.Stdout, e.Data.PTY}} {
			if s.to == nil || len(s.text) == 0 {
				continue
			}
			if _, r.writeFailed = s.to.Write(s.text); r.writeFailed != nil {
				return r.writeFailed
			}
		}
	case e.End != nil:
		r.end = e.End
	}
	return ctx.Err()
}

func (r *execution) handleEndOfStream(payload []byte) error {
	var e wireEndOfStream
	if err := json.Unmarshal(payload, &e); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	if e.Error == nil || r.end != nil {
		return nil
	}
	r.endedBy = e.Error.Code
	text := e.Error.Code + ": " + e.Error.Message
	switch e.Error.Code {
	case "deadline_exceeded":
		return r.c.Fault(fault.KindTimeout, r.op(), "a time limit in the sandbox ended it; its child processes may still run")
	case "invalid_argument":
		if r.cmd.Workdir != "" && strings.HasPrefix(e.Error.Message, "cwd ") {
			return fault.Placed(guest.NoFolder(r.cmd.Workdir), r.c.Profile, r.op())
		}
		return r.c.Fault(fault.KindUsage, r.op(), "%s", text)
	case "unauthenticated", "permission_denied":
		return r.c.Fault(fault.KindAuth, r.op(), "%s", text)
	case "not_found":
		return r.c.Fault(fault.KindNotFound, r.op(), "%s", text)
	}
	return r.c.Fault(fault.KindUnavailable, r.op(), "%s", text)
}

// seenExit is the exit of a command that has ended. Code -1 stands for any signal, which the
// status names.
func (r *execution) seenExit() (sandbox.Exit, error) {
	f := triage.ExitFacts{
		Words: exitWords(), Provider: r.c.TypeName, Raw: strconv.Itoa(r.end.ExitCode), At: r.c.Now(), Source: "envd", Lines: r.stderr.Lines(),
		Died: sandbox.VerdictOf(!r.end.Exited),
	}
	if strings.HasPrefix(r.end.Status, "signal:") {
		f.Raw = r.end.Status
	}
	exit := triage.ClassifyExit(triage.NewMatcher(), f)
	if r.gaps > 0 {
		exit.Evidence = append(exit.Evidence, r.c.Evidence("lost connections", strconv.Itoa(r.gaps), "envd"))
	}
	return exit, fault.Placed(guest.NotStarted(r.end.ExitCode, r.cmd.Args[0], r.stderr.String()), r.c.Profile, r.op())
}
