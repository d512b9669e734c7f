package monotask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// CapturesOutput is false: it is not published what the worker writes into its log.
func (c *Client) CapturesOutput(sandbox.Sandbox) bool { return false }

// Logs reads the log that the worker keeps. Its format is not published: arrays of texts or of
// objects, an object with such an array, lines of JSON and plain text are all accepted.
func (c *Client) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		r := &logReader{c: c, id: id, q: q}
		lines, ended, err := r.readNew(ctx)
		switch {
		case !wirekit.YieldLines(wirekit.LastLines(lines, q.Tail), yield):
		case err != nil:
			yield(sandbox.LogLine{}, err)
		case q.Follow && !ended:
			wirekit.Follow{First: 500 * time.Millisecond, Longest: 5 * time.Second, Profile: c.Profile, Op: "logs " + id}.Run(ctx, r.readNew, yield)
		}
	}
}

// logReader is the position of one reader in a log. Each answer has the whole log.
type logReader struct {
	c     *Client
	id    string
	q     providers.LogQuery
	shown int // lines
}

// readNew are the lines that came since the last read. With Follow, ended says that the
// sandbox has ended, so that no more lines will come.
func (r *logReader) readNew(ctx context.Context) (lines []sandbox.LogLine, ended bool, err error) {
	all, err := r.c.readLog(ctx, r.id)
	switch {
	case wirekit.Missing(err) && r.shown > 0:
		return nil, true, nil
	case err != nil:
		return nil, false, err
	}
	lines = slices.DeleteFunc(all[min(r.shown, len(all)):], func(l sandbox.LogLine) bool { return !l.At.IsZero() && l.At.Before(r.q.Since) })
	r.shown = max(r.shown, len(all))
	if r.q.Follow {
		s, err := r.c.Get(ctx, r.id)
		ended = wirekit.Missing(err) || s.State.Ended()
	}
	return lines, ended, nil
}

func (c *Client) readLog(ctx context.Context, id string) ([]sandbox.LogLine, error) {
	r, err := c.sandboxRequest("logs", id, "logs")
	if err != nil {
		return nil, err
	}
	res, err := c.API.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	lines, err := parseLog(res.Body)
	if err != nil {
		return nil, c.Fault(fault.KindUnavailable, r.Op, "%w", err).WithHint("check that the url is that of the agent worker")
	}
	return lines, nil
}

// parseLog reads lines in any of the formats that Logs accepts. A text that is no JSON is plain
// text. A web page, half a document and null are errNoLog and no empty log.
func parseLog(body []byte) ([]sandbox.LogLine, error) {
	body = bytes.TrimSpace(body)
	var rows []json.RawMessage
	var held map[string]json.RawMessage
	var whole any
	isJSON := json.Unmarshal(body, &whole) == nil
	switch {
	case len(body) == 0, body[0] == '<', bytes.IndexByte(body, 0) >= 0:
		return nil, errNoLog
	case body[0] == '[' && json.Unmarshal(body, &rows) == nil:
		return parseRows(rows), nil
	case body[0] == '{' && json.Unmarshal(body, &held) == nil:
		for _, key := range []string{"logs", "lines", "entries"} {
			if text := bytes.TrimSpace(held[key]); len(text) > 0 && text[0] == '[' && json.Unmarshal(text, &rows) == nil {
				return parseRows(rows), nil
			}
		}
		if line, ok := parseRow(body); ok && line.Text != string(body) { // one line of JSON
			return []sandbox.LogLine{line}, nil
		}
		return nil, errNoLog
	case isJSON:
		return nil, errNoLog
	}
	good := false
	for line := range bytes.Lines(body) {
		line = bytes.TrimRight(line, "\r\n")
		good = good || json.Valid(line) || (len(line) > 0 && line[0] != '{' && line[0] != '[')
		rows = append(rows, line)
	}
	if !good {
		return nil, errNoLog
	}
	return parseRows(rows), nil
}

var errNoLog = errors.New("the answer is not a log")

func parseRows(rows []json.RawMessage) []sandbox.LogLine {
	var lines []sandbox.LogLine
	for _, row := range rows {
		if l, ok := parseRow(row); ok {
			lines = append(lines, l)
		}
	}
	return lines
}

func parseRow(row json.RawMessage) (sandbox.LogLine, bool) {
	l := sandbox.LogLine{Stream: "log"}
	var w *wireLine
	text := bytes.TrimSpace(row)
	switch {
	case len(text) == 0:
		return l, false
	case text[0] != '{' && json.Unmarshal(row, &l.Text) == nil:
		return l, true
	case json.Unmarshal(row, &w) != nil || w == nil:
		l.Text = strings.ToValidUTF8(string(row), "\uFFFD")
		return l, true
	}
	firstText := func(values ...any) string {
		for _, v := range values {
			if text, ok := v.(string); ok && text != "" {
				return text
			}
		}
		return ""
	}
	l.Text = firstText(w.Message, w.Line, w.Text, w.Msg)
	if l.Text == "" {
		l.Text = string(row)
	}
	if level := firstText(w.Level, w.Stream); level != "" {
		l.Stream = level
	}
	if at, err := time.Parse(time.RFC3339, firstText(w.Timestamp, w.At, w.Time)); err == nil {
		l.At = at
	} else if ms, ok := w.Timestamp.(float64); ok && ms > 0 && ms < 1e14 {
		l.At = time.UnixMilli(int64(ms)).UTC()
	}
	return l, true
}

const (
	maxReads = 4                    // at the same time
	joinTime = 2 * time.Millisecond // that a read waits for callers to join: a tenth of a quick read
)

// sharedReads lets concurrent callers share one read. The read begins after each of them has
// called, so that its result is as recent as one of their own: a caller that comes while a read
// runs waits for the next one.
type sharedReads[T any] struct {
	running chan struct{} // has an element for each read that runs

	mu   sync.Mutex
	next *sharedRead[T] // has not begun; nil = no caller waits
}

type sharedRead[T any] struct {
	done     chan struct{}
	canceled bool // the context of the caller that made it ended; the result is not for others
	result   T
	err      error
}

func newSharedReads[T any]() *sharedReads[T] {
	return &sharedReads[T]{running: make(chan struct{}, maxReads)}
}

// readShared returns a result of ask that was requested after this call. The first caller that waits
// calls ask for all; when its context ends, another caller does.
func (s *sharedReads[T]) readShared(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	for {
		s.mu.Lock()
		o, first := s.next, s.next == nil
		if first {
			o = &sharedRead[T]{done: make(chan struct{})}
			s.next = o
		}
		s.mu.Unlock()
		if first {
			s.runShared(ctx, o, ask)
			return o.result, o.err
		}
		select {
		case <-o.done:
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
		if !o.canceled {
			return o.result, o.err
		}
	}
}

// runShared makes the read for all callers that come before it begins.
func (s *sharedReads[T]) runShared(ctx context.Context, o *sharedRead[T], ask func(context.Context) (T, error)) {
	defer close(o.done)
	begin := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.next = nil
	}
	_ = poll.Sleep(ctx, joinTime)
	select {
	case s.running <- struct{}{}:
		begin()
		o.result, o.err = ask(ctx)
		<-s.running
	case <-ctx.Done():
		begin()
		o.err = context.Cause(ctx)
	}
	o.canceled = ctx.Err() != nil
}
