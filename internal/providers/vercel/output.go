package vercel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// maxReconnects is how often a log that brings nothing new is requested.
const maxReconnects = 3

var errEnough = errors.New("enough")

// outputReader is the position of one reader in the output of a command. Each connection
// begins at the start again, so the position is a number of bytes.
type outputReader struct {
	c    *Client
	id   string // of the session
	op   string
	cmd  wireCommand
	take func(sandbox.LogLine) bool

	bytesRead map[string]int64 // by stream
	splitters map[string]*wirekit.LineSplitter
	open      bool // reports lines that have not ended
	complete  bool // all lines were given to take
}

func newOutputReader(r *commandLogs, w wireCommand) *outputReader {
	splitters := map[string]*wirekit.LineSplitter{"stdout": {Stream: "stdout"}, "stderr": {Stream: "stderr"}}
	return &outputReader{c: r.c, id: r.v.session.ID, op: r.op, cmd: w, bytesRead: map[string]int64{}, splitters: splitters}
}

func (o *outputReader) commandEnded() bool { return o.cmd.ExitCode != nil }

// readAll reads until the command has ended or, with patience, until nothing has come for
// that long. A lost connection is opened again.
func (o *outputReader) readAll(ctx context.Context, patience time.Duration) error {
	for tries := 1; ; tries++ {
		before := o.bytesRead["stdout"] + o.bytesRead["stderr"]
		err := o.readConnection(ctx, patience)
		if o.bytesRead["stdout"]+o.bytesRead["stderr"] > before {
			tries = 1
		}
		if err == nil || !errors.Is(err, errEarly) || tries >= maxReconnects {
			return err
		}
		if err := wirekit.Sleep(ctx, pollInterval); err != nil {
			return fault.Placed(err, o.c.Profile, o.op)
		}
	}
}

// readConnection reads one connection. After errEarly there may be more output.
func (o *outputReader) readConnection(ctx context.Context, patience time.Duration) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := o.c.openStream(inner, httpx.Request{Op: o.op, Path: sessionPath(o.id, "cmd", o.cmd.ID, "logs"), OneSandbox: true})
	if err != nil {
		if inTransition(err) {
			return o.earlyFault(err)
		}
		return err
	}
	defer func() { _ = s.Close() }()
	received := func() {}
	if patience > 0 && !o.commandEnded() {
		idle, most := time.AfterFunc(patience, cancel), time.AfterFunc(busyTime, cancel)
		defer idle.Stop()
		defer most.Stop()
		received = func() { idle.Reset(patience) }
	}
	began, skip := time.Now(), maps.Clone(o.bytesRead)
	err = readNDJSON(s, func(l wireLine) error {
		received()
		return o.addChunk(l, skip)
	})
	reported, inBand := errors.AsType[streamError](err)
	switch {
	case errors.Is(err, errEnough):
		return err
	case ctx.Err() != nil:
		return o.c.contextFault(ctx, o.op)
	case inner.Err() != nil:
		return o.leaveRunning(time.Since(began))
	case inBand && reported.Code == "sandbox_stopped":
		return nil
	case errors.Is(err, errLong):
		return o.c.Fault(fault.KindRefused, o.op, "%w", err).WithHint("make the program write it to a file, and read that in parts")
	case err != nil:
		return o.earlyFault(err)
	}
	return o.checkEnd(ctx)
}

// earlyFault wraps the error that cut a log short.
func (o *outputReader) earlyFault(err error) error {
	return o.c.Fault(fault.KindUnavailable, o.op, "%w: %w", errEarly, err)
}

// leaveRunning ends the read of a command that still runs. Where it never paused, more output
// is missing, which a line says.
func (o *outputReader) leaveRunning(after time.Duration) error {
	if after >= busyTime && !o.take(sandbox.MissingOutput("it writes continuously, and newer output is left out: follow it with -f", sandbox.LogGap{})) {
		return errEnough
	}
	return nil
}

// checkEnd reads whether the command has ended or only the connection; the latter is
// errEarly.
func (o *outputReader) checkEnd(ctx context.Context) error {
	if o.commandEnded() {
		return nil
	}
	var one wireOneCommand
	switch err := o.c.getObject(ctx, o.op, sessionPath(o.id, "cmd", o.cmd.ID), &one); {
	case wirekit.Missing(err):
		return nil
	case err != nil:
		return err
	case one.Command.ExitCode == nil:
		return o.c.Fault(fault.KindUnavailable, o.op, "%w", errEarly)
	}
	o.cmd.ExitCode = one.Command.ExitCode
	return nil
}

// addChunk gives the lines of a chunk to take, without the bytes of earlier connections.
func (o *outputReader) addChunk(l wireLine, skip map[string]int64) error {
	text, ok := l.outputText()
	if !ok {
		return nil
	}
	o.c.warnAltered(text)
	known := min(skip[l.Stream], int64(len(text)))
	skip[l.Stream] -= known
	o.bytesRead[l.Stream] += int64(len(text)) - known
	lines := o.splitters[l.Stream].Add([]byte(text[known:]), nil)
	if o.open {
		lines = o.splitters[l.Stream].AddGrowth(lines)
	}
	for _, line := range lines {
		if !o.take(line) {
			return errEnough
		}
	}
	return nil
}

// flushPartial gives lines without a line end to take; false when that wants no more.
func (o *outputReader) flushPartial() bool {
	for _, line := range o.splitters["stderr"].Flush(o.splitters["stdout"].Flush(nil)) {
		if !o.take(line) {
			return false
		}
	}
	return true
}

// errLong says that one line of a stream is longer than maxLine.
var errLong = fmt.Errorf("%w: one part of it is longer than %d MiB", errStream, maxLine>>20)

// errEarly says that a stream ended before its last line, so that the end of the command is
// not known.
var errEarly = errors.New("the stream ended early")

// errStream is inside the error of every invalid line.
var errStream = errors.New("the stream is invalid")

// streamError is an error that the service reports inside a stream with status 200.
type streamError struct{ wireFailure }

// Error is the code and the message of the service.
func (f streamError) Error() string { return f.Code + ": " + f.Message }

// readNDJSON gives each line to take, until the end of the stream, an error of take, or a
// failure that the service reports in the stream.
func readNDJSON(r io.Reader, take func(wireLine) error) error {
	lines := newStreamLines(r)
	for {
		line, lost := lines.next()
		switch {
		case errors.Is(lost, io.EOF):
			return nil
		case lost != nil && (len(line) == 0 || errors.Is(lost, errStream)):
			return lost
		case len(line) == 0:
			continue
		}
		var l wireLine
		if _, err := httpx.Decode(line, &l); err != nil { // the list of commands says what is odd in one
			if lost != nil {
				return lost // the line is cut off
			}
			return fmt.Errorf("%w: %q", errStream, line[:min(60, len(line))])
		}
		if l.Stream == "error" {
			var f streamError
			_ = json.Unmarshal(l.Data, &f.wireFailure) // a failure without a text is one, too
			return f
		}
		if err := take(l); err != nil {
			return err
		}
		if lost != nil {
			return lost
		}
	}
}

// alteredText is shown once per client: a program may write U+FFFD itself.
const alteredText = "the API returns output as text: bytes that are not UTF-8 become \"\uFFFD\". Encode them in the sandbox (base64) to keep them"

func (c *Client) warnAltered(text string) {
	if strings.ContainsRune(text, utf8.RuneError) {
		c.altered.Do(func() { c.notice(c.Profile + ": " + alteredText) })
	}
}

// outputText is the text of a line of output; false for other lines.
func (l wireLine) outputText() (string, bool) {
	var text string
	if l.Stream != "stdout" && l.Stream != "stderr" {
		return "", false
	}
	err := json.Unmarshal(l.Data, &text)
	return text, err == nil
}
