package vercel

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

const (
	// reconnects is how often a log that brings nothing new is asked for again.
	reconnects = 3
	// mostLine is how long one line may grow, in bytes; the rest makes another one.
	mostLine = 1 << 20
)

// errEnough says that the reader wants no more.
var errEnough = errors.New("enough")

// output is one reader's place in a command's output. Each connection begins at the
// start again, so what was read is known by its number of bytes.
type output struct {
	c    *Client
	id   string // of the session
	op   string
	cmd  wireCommand
	take func(sandbox.LogLine) bool

	had  map[string]int64  // bytes read, by stream
	rest map[string][]byte // of lines that have not ended
	torn map[string]bool   // the line's beginning was given already
	told bool              // all of it was given
}

func newOutput(r *commandLogs, w wireCommand) *output {
	return &output{c: r.c, id: r.v.session.ID, op: r.op, cmd: w, had: map[string]int64{}, rest: map[string][]byte{}, torn: map[string]bool{}}
}

func (o *output) ended() bool { return o.cmd.ExitCode != nil }

// read gives lines until the command has ended or, with patience, until nothing has
// come for so long. A connection that is lost is made again.
func (o *output) read(ctx context.Context, patience time.Duration) error {
	for tries := 1; ; tries++ {
		before := o.had["stdout"] + o.had["stderr"]
		err := o.once(ctx, patience)
		if o.had["stdout"]+o.had["stderr"] > before {
			tries = 1
		}
		if err == nil || !errors.Is(err, errEarly) || tries >= reconnects {
			return err
		}
		if err := guest.Wait(ctx, lookAgain); err != nil {
			return fault.Placed(err, o.c.name, o.op)
		}
	}
}

// once reads one connection. An error that is errEarly leaves open what would have
// come.
func (o *output) once(ctx context.Context, patience time.Duration) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := o.c.stream(inner, httpx.Request{Op: o.op, Path: session(o.id, "cmd", o.cmd.ID, "logs"), OneSandbox: true})
	if err != nil {
		if moving(err) {
			return o.early(err)
		}
		return err
	}
	defer func() { _ = s.Close() }()
	heard := func() {}
	if patience > 0 && !o.ended() {
		idle, most := time.AfterFunc(patience, cancel), time.AfterFunc(busy, cancel)
		defer idle.Stop()
		defer most.Stop()
		heard = func() { idle.Reset(patience) }
	}
	began, skip := time.Now(), maps.Clone(o.had)
	err = lines(s, func(l wireLine) error {
		heard()
		return o.chunk(l, skip)
	})
	told, inBand := errors.AsType[failure](err)
	switch {
	case errors.Is(err, errEnough):
		return err
	case ctx.Err() != nil:
		return o.c.over(ctx, o.op)
	case inner.Err() != nil:
		return o.left(time.Since(began))
	case inBand && told.Code == "sandbox_stopped":
		return nil
	case errors.Is(err, errLong):
		return fault.New(fault.KindRefused, "%w", err).At(o.c.name, o.op).WithHint("let the program write it to a file, and read that in pieces")
	case err != nil:
		return o.early(err)
	}
	return o.settle(ctx)
}

// early wraps what cut a log short.
func (o *output) early(err error) error {
	return fault.New(fault.KindUnavailable, "%w: %w", errEarly, err).At(o.c.name, o.op)
}

// left is the end of a look at a command that still runs; one that never rested has
// written more.
func (o *output) left(after time.Duration) error {
	if after >= busy && !o.take(sandbox.MissingOutput("it writes without a pause, and what comes now is left out: follow it with -f", sandbox.LogGap{})) {
		return errEnough
	}
	return nil
}

// settle asks whether the command has ended with its log, or the log alone.
func (o *output) settle(ctx context.Context) error {
	if o.ended() {
		return nil
	}
	var one wireOneCommand
	switch err := o.c.get(ctx, o.op, session(o.id, "cmd", o.cmd.ID), &one); {
	case missing(err):
		return nil
	case err != nil:
		return err
	case one.Command.ExitCode == nil:
		return fault.New(fault.KindUnavailable, "%w", errEarly).At(o.c.name, o.op)
	}
	o.cmd.ExitCode = one.Command.ExitCode
	return nil
}

// chunk makes lines of a piece, but for what was read before.
func (o *output) chunk(l wireLine, skip map[string]int64) error {
	text, ok := l.text()
	if !ok {
		return nil
	}
	o.c.warnAltered(text)
	known := min(skip[l.Stream], int64(len(text)))
	skip[l.Stream] -= known
	text = text[known:]
	o.had[l.Stream] += int64(len(text))
	all := append(o.rest[l.Stream], text...)
	for {
		end, skip := bytes.IndexByte(all, '\n'), 1
		long := end > mostLine || (end < 0 && len(all) > mostLine)
		if long {
			end, skip = mostLine, 0
		}
		if end < 0 {
			break
		}
		line := o.line(l.Stream, all[:end], long)
		all, o.torn[l.Stream] = all[end+skip:], long
		o.rest[l.Stream] = all
		if !o.take(line) {
			return errEnough
		}
	}
	o.rest[l.Stream] = all
	return nil
}

// flush gives what was written without a line end.
func (o *output) flush() bool {
	for _, stream := range []string{"stdout", "stderr"} {
		if text := o.rest[stream]; len(text) > 0 && !o.take(o.line(stream, text, false)) {
			return false
		}
		delete(o.rest, stream)
	}
	return true
}

func (o *output) line(stream string, text []byte, long bool) sandbox.LogLine {
	return sandbox.LogLine{Stream: stream, Text: strings.TrimSuffix(string(text), "\r"), Truncated: long || o.torn[stream]}
}
