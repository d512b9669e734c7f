package monotask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

// CapturesOutput is false: what the worker writes into its log is not published.
func (c *Client) CapturesOutput(sandbox.Sandbox) bool { return false }

// Logs reads what the worker keeps. How it writes lines is not published: arrays
// of texts or of objects, an object that holds one, lines of JSON and plain text
// are all read.
func (c *Client) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		r := &reading{c: c, id: id, q: q}
		for pause := followMin; ; pause = min(2*pause, followMax) {
			fresh, err := r.once(ctx)
			if !guest.Give(fresh, yield) {
				return
			}
			if err == nil && !r.over {
				err = guest.Wait(ctx, pause)
			}
			if err != nil {
				yield(sandbox.LogLine{}, err)
				return
			}
			if r.over {
				return
			}
			if len(fresh) > 0 {
				pause = followMin / 2
			}
		}
	}
}

// reading is one reader's place in a log, which each answer brings whole.
type reading struct {
	c     *Client
	id    string
	q     providers.LogQuery
	shown int
	over  bool // nothing more will come, or nobody wants it
}

// once gives the lines that came since the last look.
func (r *reading) once(ctx context.Context) ([]sandbox.LogLine, error) {
	lines, err := r.c.log(ctx, r.id)
	switch {
	case missing(err) && r.shown > 0:
		r.over = true
		return nil, nil
	case err != nil:
		return nil, err
	}
	fresh := since(lines[min(r.shown, len(lines)):], r.q.Since)
	if r.shown == 0 && r.q.Tail > 0 && len(fresh) > r.q.Tail {
		fresh = fresh[len(fresh)-r.q.Tail:]
	}
	r.shown = max(r.shown, len(lines))
	r.over = !r.q.Follow || r.c.ended(ctx, r.id)
	return fresh, nil
}

// The pace of following.
const (
	followMin = 500 * time.Millisecond
	followMax = 5 * time.Second
)

func missing(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.KindNotFound || kind == fault.KindGone
}

// ended says that no more lines will come.
func (c *Client) ended(ctx context.Context, id string) bool {
	s, err := c.Get(ctx, id)
	return missing(err) || s.State.Ended()
}

func (c *Client) log(ctx context.Context, id string) ([]sandbox.LogLine, error) {
	r, err := c.below("logs", id, "logs")
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	lines, err := parseLog(res.Body)
	if err != nil {
		return nil, fault.New(fault.KindUnavailable, "%w", err).At(c.name, r.Op).WithHint("is the url that of the agent worker?")
	}
	return lines, nil
}

func since(lines []sandbox.LogLine, from time.Time) []sandbox.LogLine {
	var fresh []sandbox.LogLine
	for _, l := range lines {
		if l.At.IsZero() || !l.At.Before(from) {
			fresh = append(fresh, l)
		}
	}
	return fresh
}

// parseLog reads lines in any of the shapes that Logs names. What is no JSON is plain
// text. An answer that holds none of that, a web page, half a document, null, is no
// empty log: fault.KindUnavailable.
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
		return linesOf(rows), nil
	case body[0] == '{' && json.Unmarshal(body, &held) == nil:
		for _, key := range []string{"logs", "lines", "entries"} {
			if text := bytes.TrimSpace(held[key]); len(text) > 0 && text[0] == '[' && json.Unmarshal(text, &rows) == nil {
				return linesOf(rows), nil
			}
		}
		if line, ok := lineOf(body); ok && line.Text != string(body) { // one line of JSON
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
	return linesOf(rows), nil
}

// errNoLog says that an answer is no log of any shape.
var errNoLog = errors.New("the answer is no log")

func linesOf(rows []json.RawMessage) []sandbox.LogLine {
	var lines []sandbox.LogLine
	for _, row := range rows {
		if l, ok := lineOf(row); ok {
			lines = append(lines, l)
		}
	}
	return lines
}

func lineOf(row json.RawMessage) (sandbox.LogLine, bool) {
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
	word := func(values ...any) string {
		for _, v := range values {
			if text, ok := v.(string); ok && text != "" {
				return text
			}
		}
		return ""
	}
	l.Text = word(w.Message, w.Line, w.Text, w.Msg)
	if l.Text == "" {
		l.Text = string(row)
	}
	if level := word(w.Level, w.Stream); level != "" {
		l.Stream = level
	}
	if at, err := time.Parse(time.RFC3339, word(w.Timestamp, w.At, w.Time)); err == nil {
		l.At = at
	} else if ms, ok := w.Timestamp.(float64); ok && ms > 0 && ms < 1e14 {
		l.At = time.UnixMilli(int64(ms)).UTC()
	}
	return l, true
}

// readCleaned reads what a cleanup said, as far as it is understood.
func readCleaned(body []byte) wireCleaned {
	var w wireCleaned
	if json.Unmarshal(body, &w) != nil {
		return wireCleaned{}
	}
	return w
}

func number(n *int64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatInt(*n, 10)
}
