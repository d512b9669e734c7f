package vercel

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

// quiet is how long the log of a command that still runs may bring nothing before
// a reader who does not follow has all of it: the API knows no end of "so far".
const quiet = time.Second

// Logs reads the output of the program that create started, from its files
// inside; of any other session the output of its commands, oldest first. The API
// keeps it by command, without times, and only while the session runs.
func (c *Client) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		v, err := c.resolve(ctx, "logs", id)
		if err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		if v.box != nil && v.box.Tags[tagRun] != "" && v.session.Status == "running" {
			for line, err := range guest.Logs(ctx, c.shellOf(v.session.ID), v.box.Tags[tagRun], q) {
				if !yield(line, c.at(err, "logs "+id)) {
					return
				}
			}
			return
		}
		c.commandLogs(ctx, v.session.ID, q, yield)
	}
}

// commandLogs reads the commands that there are; following ends with the last of
// them.
func (c *Client) commandLogs(ctx context.Context, id string, q providers.LogQuery, yield func(sandbox.LogLine, error) bool) {
	var all wireCommands
	if _, err := c.http.JSON(ctx, httpx.Request{Op: "logs " + id, Path: session(id, "cmd"), Query: c.scoped()}, &all); err != nil {
		yield(sandbox.LogLine{}, c.stopped(err))
		return
	}
	slices.Reverse(all.Commands) // the newest come first
	var kept []sandbox.LogLine
	for _, command := range all.Commands {
		more := func(l sandbox.LogLine) bool {
			if q.Tail > 0 && !q.Follow {
				kept = append(kept, l)
				kept = kept[max(0, len(kept)-q.Tail):]
				return true
			}
			return yield(l, nil)
		}
		done, err := c.commandLog(ctx, id, command, q.Follow, more)
		if err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		if !done {
			return
		}
	}
	guest.Give(kept, yield)
}

// commandLog yields one command's output by lines; the API sends it in chunks.
func (c *Client) commandLog(ctx context.Context, id string, command wireCommand, follow bool, yield func(sandbox.LogLine) bool) (more bool, err error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := c.http.Stream(inner, httpx.Request{
		Op: "logs " + id, Path: session(id, "cmd", command.ID, "logs"), Query: c.scoped(), Header: http.Header{"Accept": {"application/x-ndjson"}},
	})
	if err != nil {
		return false, c.stopped(err)
	}
	defer func() { _ = s.Body.Close() }()
	var idle *time.Timer
	if command.ExitCode == nil && !follow {
		idle = time.AfterFunc(quiet, cancel)
		defer idle.Stop()
	}
	k := &keeper{rest: map[string][]byte{}, yield: yield}
	err = lines(s.Body, func(l wireLine) error {
		if idle != nil {
			idle.Reset(quiet)
		}
		return k.take(l)
	})
	switch {
	case errors.Is(err, errEnough):
		return false, nil
	case ctx.Err() != nil:
		return false, &fault.Error{Kind: fault.KindOf(ctx.Err()), Provider: c.name, Op: "logs " + id, Err: context.Cause(ctx)}
	case err != nil && inner.Err() == nil:
		if f, ok := errors.AsType[failure](err); !ok || f.Code != "sandbox_stopped" {
			return false, fault.New(fault.KindUnavailable, "%w", err).At(c.name, "logs "+id)
		}
	}
	return k.flush(), nil
}

// errEnough says that the reader wants no more.
var errEnough = errors.New("enough")

// keeper makes lines of chunks.
type keeper struct {
	rest  map[string][]byte
	yield func(sandbox.LogLine) bool
}

func (k *keeper) take(l wireLine) error {
	text, ok := l.text()
	if !ok {
		return nil
	}
	all := append(k.rest[l.Stream], text...)
	for {
		line, rest, found := bytes.Cut(all, []byte("\n"))
		if !found {
			k.rest[l.Stream] = all
			return nil
		}
		if !k.yield(sandbox.LogLine{Stream: l.Stream, Text: strings.TrimSuffix(string(line), "\r")}) {
			return errEnough
		}
		all = rest
	}
}

// flush yields what was written without a line end.
func (k *keeper) flush() bool {
	for stream, text := range k.rest {
		if len(text) > 0 && !k.yield(sandbox.LogLine{Stream: stream, Text: string(text)}) {
			return false
		}
	}
	return true
}
