package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// followOutage is how long a log that is followed may be lost.
const followOutage = time.Minute

// CapturesOutput is true for containers of sbx, whose program writes into files. The engine's own log has no
// output of `docker exec`, and a line only when it has ended.
func (c *Client) CapturesOutput(s sandbox.Sandbox) bool { return madeBySbx(s.Labels) }

// Logs reads the output of the program that create started, from its files inside; of any other container the
// engine's log of its main program.
func (c *Client) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		op := "logs " + id
		w, err := c.inspect(ctx, "logs", id)
		switch {
		case err != nil:
			yield(sandbox.LogLine{}, err)
		case !madeBySbx(w.Config.Labels):
			r := &engineLog{c: c, id: w.ID, op: op, tty: w.Config.Tty, q: q, since: q.Since}
			r.deliver(ctx, yield)
		case w.State.Status != "running":
			yield(sandbox.LogLine{}, c.Fault(fault.KindUnavailable, op, "it is %s, and its output is stored in it", w.State.Status).
				WithHint("`docker start %s` runs it again until its time limit, without its program", w.ID))
		default:
			for line, err := range guest.Logs(ctx, c.shellOf(w.ID, nil), guest.MainTag, q) {
				if !yield(line, fault.Placed(err, c.Profile, op)) {
					return
				}
			}
		}
	}
}

// engineLog is the position of one reader in the engine's log of a container.
type engineLog struct {
	c     *Client
	id    string
	op    string
	tty   bool // one raw stream instead of frames
	q     providers.LogQuery
	since time.Time // lines before it were read, or are not wanted
	heard wirekit.Pulse
}

var errEnough = errors.New("the reader wants no more")

// deliver yields the lines. A log that is followed and lost is opened again behind its last line.
func (r *engineLog) deliver(ctx context.Context, yield func(sandbox.LogLine, error) bool) {
	pauses := newPauses()
	var lost time.Time // since when nothing has come; zero = it has
	for {
		before := r.since
		err := r.read(ctx, func(l sandbox.LogLine) bool { return yield(l, nil) })
		if r.since.After(before) {
			lost = time.Time{}
			pauses.Reset()
		}
		if lost.IsZero() {
			lost = time.Now()
		}
		switch {
		case err == nil, errors.Is(err, errEnough), errors.Is(err, wirekit.ErrOver):
			return
		case ctx.Err() != nil:
			yield(sandbox.LogLine{}, fault.Placed(wirekit.ContextFault(ctx), r.c.Profile, r.op))
			return
		case !r.q.Follow || fault.KindOf(err) != fault.KindUnavailable || time.Since(lost) >= followOutage || pauses.Sleep(ctx) != nil:
			yield(sandbox.LogLine{}, fault.Placed(err, r.c.Profile, r.op))
			return
		}
		r.q.Tail = 0
	}
}

// read reads the log from its position to its end.
func (r *engineLog) read(ctx context.Context, take func(sandbox.LogLine) bool) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	query := url.Values{"stdout": {"1"}, "stderr": {"1"}, "timestamps": {"1"}}
	if r.q.Tail > 0 {
		query.Set("tail", strconv.Itoa(r.q.Tail))
	}
	if !r.since.IsZero() {
		query.Set("since", secondsWithFraction(r.since))
	}
	if r.q.Follow {
		query.Set("follow", "1")
	}
	request, err := r.c.request(inner, httpx.Request{Op: r.op, Path: httpx.Path("containers", r.id, "logs"), Query: query, Quiet: r.q.Follow})
	if err != nil {
		return err
	}
	s, err := r.c.API.Stream(inner, request)
	if err != nil {
		return logFault(err)
	}
	defer func() { _ = s.Body.Close() }()
	if r.q.Follow {
		r.heard.Beat()
		go r.heard.Watch(inner, r.goesOn, cancel)
	}
	err = r.copyLines(s.Body, take)
	if cause := context.Cause(inner); cause != nil && ctx.Err() == nil {
		return cause
	}
	return err
}

// logFault is the error of a log that cannot be read: not every driver keeps one.
func logFault(err error) error {
	if s := httpx.StatusOf(err); s != nil && s.Status >= http.StatusInternalServerError && strings.Contains(s.Message, "does not support reading") {
		return fault.New(fault.KindUnsupported, "%w", err).WithHint("the logging driver of the container sends its log elsewhere")
	}
	return err
}

func (r *engineLog) goesOn(ctx context.Context) (bool, error) {
	w, err := r.c.inspect(ctx, "logs", r.id)
	if wirekit.Missing(err) {
		return false, nil
	}
	return w.State.Running, err
}

// copyLines takes the lines of a log. Each message begins with its time; a line of more than 16 KiB comes in
// several messages.
func (r *engineLog) copyLines(body io.Reader, take func(sandbox.LogLine) bool) error {
	if r.tty {
		return r.copyTerminal(body, take)
	}
	streams := map[bool]*logStream{false: newLogStream("stdout"), true: newLogStream("stderr")}
	err := eachFrame(body, func(stream byte, text []byte) error {
		r.heard.Beat()
		for _, l := range streams[stream == streamStderr].add(text) {
			if !r.pass(l, take) {
				return errEnough
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err // what has not ended comes again, or is incomplete
	}
	for _, isErr := range []bool{false, true} {
		for _, l := range streams[isErr].lines.Flush(nil) {
			l.At = streams[isErr].began
			if err == nil && !r.pass(l, take) {
				err = errEnough
			}
		}
	}
	return err
}

// copyTerminal takes the lines of a terminal, whose log has no frames.
func (r *engineLog) copyTerminal(body io.Reader, take func(sandbox.LogLine) bool) error {
	lines := wirekit.LineSplitter{Stream: "stdout", Source: logSource}
	piece := make([]byte, 32<<10)
	for {
		n, err := body.Read(piece)
		r.heard.Beat()
		found := lines.Add(piece[:n], nil)
		if errors.Is(err, io.EOF) {
			found = lines.Flush(found)
		}
		for _, l := range found {
			at, text := cutTime([]byte(l.Text))
			l.At, l.Text = at, string(text)
			if !r.pass(l, take) {
				return errEnough
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// pass gives a line to the reader and moves the position behind it.
func (r *engineLog) pass(l sandbox.LogLine, take func(sandbox.LogLine) bool) bool {
	if next := l.At.Add(time.Nanosecond); !l.At.IsZero() && next.After(r.since) {
		r.since = next
	}
	return take(l)
}

const logSource = "" // the lines are the provider's own

// logStream makes the lines of one stream out of messages.
type logStream struct {
	lines wirekit.LineSplitter
	began time.Time // of the line that has not ended
}

func newLogStream(name string) *logStream {
	return &logStream{lines: wirekit.LineSplitter{Stream: name, Source: logSource}}
}

func (s *logStream) add(message []byte) []sandbox.LogLine {
	at, text := cutTime(message)
	if s.began.IsZero() {
		s.began = at
	}
	lines := s.lines.Add(text, nil)
	for i := range lines {
		lines[i].At, s.began = s.began, at
	}
	if bytes.HasSuffix(text, []byte("\n")) {
		s.began = time.Time{}
	}
	return lines
}

// cutTime parts the time from a message; zero where there is none.
func cutTime(message []byte) (time.Time, []byte) {
	stamp, text, found := bytes.Cut(message, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(stamp[:min(len(stamp), len(time.RFC3339Nano))]))
	if err != nil || !found {
		return time.Time{}, message
	}
	return at.UTC(), text
}

// secondsWithFraction is a Unix time as the API takes it.
func secondsWithFraction(at time.Time) string {
	return fmt.Sprintf("%d.%09d", at.Unix(), at.Nanosecond())
}
