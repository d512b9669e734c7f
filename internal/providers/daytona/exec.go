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
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

const (
	scriptTimeout = 30 * time.Second // of one call of the toolbox; the scripts of sbx are short
	pollMin       = 50 * time.Millisecond
	pollMax       = time.Second
	// execOutage is how long the toolbox may not answer before a command counts as lost: a
	// proxy restarts within seconds, a dead daemon does not answer again.
	execOutage = 15 * time.Second
	stdinPart  = 48 << 10 // bytes of stdin in one call
)

// shellOf is a guest.Shell for one sandbox: the daemon pipes each command to the first of zsh, bash and
// sh that the image has. passive keeps its calls from counting as
// activity of the sandbox.
func (c *Client) shellOf(id string, env []string, passive bool) guest.Shell {
	return c.turns.Script(id, c.untimedShell(id, env, passive))
}

// untimedShell is shellOf that waits for no turn.
func (c *Client) untimedShell(id string, env []string, passive bool) guest.Shell {
	return func(ctx context.Context, text string) ([]byte, int, error) {
		var done wireExecuted
		r := httpx.Request{
			Op: "exec " + id, Method: http.MethodPost, Path: "/process/execute",
			JSON: wireExecute{Command: guest.Line(guest.ScriptName, text), Envs: wirekit.Environment(env)}, Timeout: scriptTimeout,
		}
		_, err := c.API.JSON(ctx, c.toolbox(r, id, passive), &done)
		if err != nil {
			return nil, -1, c.toolboxFault(id, err)
		}
		if done.ExitCode == nil {
			return nil, -1, fault.New(fault.KindUnavailable, "the answer has no exit code").At(c.Profile, "exec "+id).Inside()
		}
		if *done.ExitCode < 0 { // the shell was killed, or could not be started
			return nil, -1, fault.New(fault.KindUnavailable, "the shell in the sandbox was lost").At(c.Profile, "exec "+id).Inside()
		}
		return []byte(done.Result), *done.ExitCode, nil
	}
}

// toolboxFault gives an error of the toolbox its kind.
func (c *Client) toolboxFault(id string, err error) error {
	s := httpx.StatusOf(err)
	switch {
	case s == nil:
		return err
	case lacksDaemon(s):
		return fault.New(fault.KindUnavailable, "its daemon does not answer: it is dead, or memory ran out: %w", err).
			WithHint("it stays `started` for some minutes; `sbx inspect %s/%s` shows more", c.Profile, id)
	case lacksAddress(s):
		return fault.New(fault.KindGone, "it is not running: %w", err)
	case lacksContainer(s):
		return fault.New(fault.KindGone, "its container does not exist on the runner: %w", err).
			WithHint("it stays `started`, listed and billed until it is deleted: `sbx terminate --delete %s/%s`", c.Profile, id)
	}
	return err
}

// lacksDaemon is the proxy's answer for a sandbox whose daemon is dead: a 502 without a body. That of any other gateway
// on the way has one.
func lacksDaemon(s *httpx.StatusError) bool {
	return s != nil && s.Status == http.StatusBadGateway && len(s.Body) == 0
}

// lacksAddress is the proxy's definite answer about a sandbox that does not run, whatever its record says.
func lacksAddress(s *httpx.StatusError) bool {
	return s != nil && s.Status == http.StatusBadRequest && strings.Contains(s.Message, "Is the Sandbox started")
}

// lacksContainer is the proxy's definite answer about a sandbox whose container the runner does not have.
func lacksContainer(s *httpx.StatusError) bool {
	return s != nil && s.Status == http.StatusNotFound && (strings.Contains(s.Message, "container not found") || strings.Contains(s.Message, "No such container"))
}

// noEntrypoint is the answer of a toolbox that runs no entrypoint: its log is empty. An older one has no such route.
func noEntrypoint(err error) bool {
	s := httpx.StatusOf(err)
	return s != nil && s.Status == http.StatusNotFound && !lacksContainer(s)
}

// Exec runs a command detached and reads its output by offset until it has ended; a
// connection that breaks loses nothing. All of stdin is sent before the command starts.
// When ctx ends the command is killed with its child processes.
func (c *Client) Exec(ctx context.Context, id string, cmd providers.Command) (sandbox.Exit, error) {
	op := "exec " + id
	if cmd.TTY != nil {
		return sandbox.Exit{}, fault.New(fault.KindUnsupported, "a detached command has no terminal").At(c.Profile, op).WithHint("leave out -t")
	}
	if err := providers.CheckText(nil, cmd.Env); err != nil {
		return sandbox.Exit{}, fault.Placed(err, c.Profile, op)
	}
	w, err := c.detail(ctx, "exec", id)
	switch {
	case err != nil:
		return sandbox.Exit{}, err
	case stateOf(w) != sandbox.StateRunning:
		return sandbox.Exit{}, fault.New(fault.KindRefused, "it is %s", w.State).At(c.Profile, op)
	}
	r := &execution{
		c: c, id: w.ID, tag: "exec-" + strings.ToLower(rand.Text()[:12]), cmd: cmd, passive: c.shellOf(w.ID, nil, true),
		active: c.shellOf(w.ID, cmd.Env, false),
	}
	exit, err := r.execute(ctx)
	return exit, fault.Placed(err, c.Profile, op)
}

type execution struct {
	c       *Client
	id      string
	tag     string
	cmd     providers.Command
	passive guest.Shell // for reads
	active  guest.Shell // for the command itself, with its environment
	at      guest.Offsets
	stderr  wirekit.Tail

	writeFailed error // of the caller's streams
	dropped     int64 // bytes of output that were not kept
	cut         bool  // output could not be written inside
}

func (r *execution) execute(ctx context.Context) (sandbox.Exit, error) {
	args := r.cmd.Args
	if r.cmd.Stdin != nil {
		file, err := r.sendStdin(ctx)
		if err != nil {
			return sandbox.Exit{}, err
		}
		args = append([]string{"sh", "-c", `f=` + file + `; exec < "$f"; rm -f "$f"; exec "$@"`, "sh"}, args...)
	}
	if err := guest.Start(ctx, r.active, guest.Program{Tag: r.tag, Args: args, Workdir: r.cmd.Workdir, HoldsBack: true}); err != nil {
		switch {
		case ctx.Err() != nil:
			return sandbox.Exit{}, r.given(ctx, err)
		case fault.KindOf(err) == fault.KindUnavailable && !httpx.Refused(httpx.Status(err)):
			return r.lostExit(err) // it may have been started
		}
		return sandbox.Exit{}, err
	}
	err := r.copyOutput(ctx)
	switch {
	case ctx.Err() != nil:
		return sandbox.Exit{}, r.given(ctx, wirekit.ContextFault(ctx))
	case r.writeFailed != nil:
		return sandbox.Exit{}, r.given(ctx, fault.New(fault.KindUnknown, "its output cannot be written: %w", r.writeFailed))
	case err != nil:
		return r.lostExit(err)
	}
	exit, err := guest.Exit(ctx, r.passive, r.tag)
	if err != nil || exit == nil {
		return r.lostExit(cmp.Or(err, guest.ErrOutput))
	}
	r.removeFiles(ctx)
	return *exit, r.exitFault(*exit)
}

func (r *execution) copyOutput(ctx context.Context) error {
	pauses, answered := poll.NewBackoff(pollMin, pollMax), time.Now()
	for {
		o, err := guest.ReadOutputFrom(ctx, r.passive, r.tag, r.at)
		if fault.KindOf(err) == fault.KindUnavailable && time.Since(answered) < execOutage && poll.Sleep(ctx, pollMax) == nil {
			continue // the command still runs, and its output is kept
		}
		if err != nil {
			return err
		}
		answered = time.Now()
		r.at = o.Next
		r.dropped += o.DroppedOut + o.DroppedErr
		r.cut = r.cut || o.Cut
		r.stderr.Add(o.Err)
		if r.writeFailed = errors.Join(writeTo(r.cmd.Stdout, o.Out), writeTo(r.cmd.Stderr, o.Err)); r.writeFailed != nil {
			return r.writeFailed
		}
		switch {
		case o.More:
			pauses.Reset()
			continue
		case o.Ended:
			return nil
		case len(o.Out)+len(o.Err) > 0:
			pauses.Reset()
		}
		if pauses.Sleep(ctx) != nil {
			return wirekit.ContextFault(ctx)
		}
	}
}

func writeTo(to io.Writer, text []byte) error {
	if to == nil || len(text) == 0 {
		return nil
	}
	_, err := to.Write(text)
	return err
}

// exitFault is the error of a command that has ended: its exit code or a part of its output
// is missing, or it could not be run.
func (r *execution) exitFault(exit sandbox.Exit) error {
	switch {
	case exit.Code == nil:
		return fault.New(fault.KindUnavailable, "how it ended is unknown")
	case r.dropped > 0:
		return fault.New(fault.KindUnavailable, "it ended with %d, and %d bytes of its output were lost: they were not read in time", *exit.Code, r.dropped).
			WithHint("write the output to a file and fetch that in parts")
	case r.cut:
		return fault.New(fault.KindUnavailable, "it ended with %d, and a part of its output could not be stored: the sandbox's disk may be full", *exit.Code)
	}
	return guest.NotStarted(*exit.Code, r.cmd.Args[0], r.stderr.String())
}

// lostExit is the exit of a command that was started and whose end cannot be read.
func (r *execution) lostExit(err error) (sandbox.Exit, error) {
	f := triage.ExitFacts{
		Words: exitWords(), Provider: TypeName, StreamLost: true, Gone: fault.KindOf(err) == fault.KindNotFound && !errors.Is(err, guest.ErrNoRun),
		Source: "toolbox", At: r.c.Now(),
	}
	if s := httpx.StatusOf(err); s != nil {
		f.Raw = cmp.Or(s.Code, strconv.Itoa(s.Status))
		if _, known := triage.FindExitWord(f.Words, f.Raw); !known {
			f.Raw = strconv.Itoa(s.Status)
		}
	}
	exit := triage.ClassifyExit(nil, f)
	exit.Raw = cmp.Or(exit.Raw, "lost")
	exit.Evidence = append(exit.Evidence, r.c.Evidence("toolbox", err.Error(), "toolbox"))
	if f.Gone {
		return exit, fault.New(fault.KindGone, "the sandbox ended while the command ran: %w", err)
	}
	return exit, fault.New(fault.KindUnavailable, "the command may still run; its end is unknown: %w", err).
		WithHint("its output remains in ~/.sbx/runs/%s of the sandbox", r.tag)
}

// sendStdin writes stdin into a file, part by part, and returns its path as a shell word.
func (r *execution) sendStdin(ctx context.Context) (string, error) {
	file := `"${HOME:-/tmp}/.sbx-stdin-` + r.tag + `"`
	text := "umask 077; : > " + file
	part := make([]byte, stdinPart)
	for {
		if _, code, err := r.active(ctx, text); err != nil {
			return "", err
		} else if code != 0 {
			return "", fault.New(fault.KindUnavailable, "stdin could not be sent: the shell in the sandbox exits with %d", code)
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

// kill ends a command and its child processes after its caller has given up; no caller is
// left to get an error.
func (r *execution) kill(ctx context.Context) error {
	ctx, cancel := wirekit.CleanupContext(ctx)
	defer cancel()
	_, _, err := r.passive(ctx, guest.KillScript(r.tag, 9))
	if err == nil {
		r.removeFiles(ctx)
	}
	return err
}

// given kills a command that was given up with err.
func (r *execution) given(ctx context.Context, err error) error {
	return wirekit.Unended(err, r.kill(ctx), r.c.Profile, r.id)
}

func (r *execution) removeFiles(ctx context.Context) {
	_, _, _ = r.passive(ctx, `rm -rf "${HOME:-/tmp}/.sbx/runs/`+r.tag+`"`) // what is left is small and goes with the sandbox
}

// Pauses while the log of an entrypoint is followed, and how long it may fail.
const (
	entrypointFollowMin = 500 * time.Millisecond
	entrypointFollowMax = 5 * time.Second
	entrypointOutage    = time.Minute
)

// entrypointLog is the position of one reader in the log of the image's own program. Each
// answer has the whole log.
type entrypointLog struct {
	c        *Client
	id       string
	open     bool                         // reports lines that have not ended
	read     struct{ stdout, stderr int } // bytes of each stream
	out, err wirekit.LineSplitter
}

func newEntrypointLog(c *Client, id string, q providers.LogQuery) *entrypointLog {
	return &entrypointLog{
		c: c, id: id, open: q.Follow && q.Open,
		out: wirekit.LineSplitter{Stream: "stdout", Source: "entrypoint"}, err: wirekit.LineSplitter{Stream: "stderr", Source: "entrypoint"},
	}
}

// deliver yields the lines so far, and with q.Follow those that come until the sandbox ends.
// A toolbox that knows no entrypoint has an empty log.
func (e *entrypointLog) deliver(ctx context.Context, q providers.LogQuery, yield func(sandbox.LogLine, error) bool) {
	lines, err := e.newLines(ctx)
	if !q.Follow {
		lines = e.flushPartial(lines)
	}
	if noEntrypoint(err) {
		err = nil
	}
	switch {
	case err != nil && (!q.Follow || fault.KindOf(err) != fault.KindUnavailable):
		yield(sandbox.LogLine{}, e.c.toolboxFault(e.id, err))
	case wirekit.YieldLines(e.addGrowth(wirekit.LastLines(lines, q.Tail)), yield) && q.Follow:
		wirekit.Follow{
			First: entrypointFollowMin, Longest: entrypointFollowMax, Outage: entrypointOutage, Profile: e.c.Profile, Op: "logs " + e.id,
		}.Run(ctx, e.readMore, yield)
	}
}

// readMore is one read while following; the log ends with the sandbox.
func (e *entrypointLog) readMore(ctx context.Context) (lines []sandbox.LogLine, ended bool, err error) {
	now, err := e.c.detail(ctx, "logs", e.id)
	if fault.KindOf(err) == fault.KindNotFound || (err == nil && stateOf(now) != sandbox.StateRunning) {
		return e.flushPartial(nil), true, nil
	}
	lines, err = e.newLines(ctx)
	return e.addGrowth(lines), false, e.c.toolboxFault(e.id, err)
}

// newLines gives the lines that have ended and were not delivered yet.
func (e *entrypointLog) newLines(ctx context.Context) ([]sandbox.LogLine, error) {
	var w wireLogs
	_, err := e.c.API.JSON(ctx, e.c.toolbox(httpx.Request{Op: "logs " + e.id, Path: "/process/session/entrypoint/logs"}, e.id, true), &w)
	if err != nil {
		return nil, err
	}
	return addBehind(&e.err, w.Stderr, &e.read.stderr, addBehind(&e.out, w.Stdout, &e.read.stdout, nil)), nil
}

// addBehind appends the lines of a stream that end behind the bytes that were read, and counts all as
// read. A stream that has become shorter was started again.
func addBehind(s *wirekit.LineSplitter, text string, read *int, lines []sandbox.LogLine) []sandbox.LogLine {
	if len(text) < *read {
		*read = 0
		lines = s.Flush(lines)
	}
	piece := text[*read:]
	*read = len(text)
	return s.Add([]byte(piece), lines)
}

// flushPartial appends the lines that have not ended.
func (e *entrypointLog) flushPartial(lines []sandbox.LogLine) []sandbox.LogLine {
	return e.err.Flush(e.out.Flush(lines))
}

// addGrowth appends what the lines that have not ended have grown by, where that is reported.
func (e *entrypointLog) addGrowth(lines []sandbox.LogLine) []sandbox.LogLine {
	if !e.open {
		return lines
	}
	return e.err.AddGrowth(e.out.AddGrowth(lines))
}

func splitLines(stream, text string) []sandbox.LogLine {
	var lines []sandbox.LogLine
	for line := range strings.Lines(text) {
		lines = append(lines, sandbox.LogLine{Stream: stream, Text: strings.TrimRight(line, "\r\n"), Source: "entrypoint"})
	}
	return lines
}
