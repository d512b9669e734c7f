package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
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

// CapturesOutput is true for containers of sbx, whose program writes into files. The engine's own log has no
// output of `docker exec`, and a line only when it has ended.
func (c *Client) CapturesOutput(s sandbox.Sandbox) bool { return madeBySbx(s.Labels) }

// ReadsLogParts implements providers.LogPartReader: the engine keeps the output of all runs in one log.
func (c *Client) ReadsLogParts() (previous, container bool) { return true, false }

// Logs reads the output of the program that create started, from its files inside; of any other container the
// engine's log of its main program.
func (c *Client) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		op := "logs " + id
		if q.Follow {
			c.watches.Begin(id)
			defer c.watches.End(id)
		}
		w, _, err := c.inspectStarted(ctx, "logs", id)
		switch {
		case err != nil:
			yield(sandbox.LogLine{}, err)
		case q.Previous && (madeBySbx(w.Config.Labels) || !w.ranBefore()):
			yield(sandbox.LogLine{}, c.Fault(fault.KindNotFound, op, "its program was not started again: there is no earlier run"))
		case !madeBySbx(w.Config.Labels):
			c.newEngineLog(w, op, q).Deliver(ctx, yield)
		case w.State.Status != "running":
			yield(sandbox.LogLine{}, c.Fault(fault.KindUnavailable, op, "it is %s, and its output is stored in it", w.State.Status).Inside().
				WithHint("`docker start %s` runs it again until its time limit, without its program", w.ID))
		default:
			lines := guest.Logs(ctx, c.shellOf(w.ID, nil), guest.MainTag, q)
			switch {
			case q.Follow:
				lines = c.watches.Follow(ctx, w.ID, c.scriptsOf(w.ID).Stream(), q)
			case httpx.LookNotes(ctx) != nil:
				lines = c.withPause(ctx, w, lines)
			}
			for line, err := range lines {
				if !yield(line, fault.Placed(err, c.Profile, op)) {
					return
				}
			}
		}
	}
}

// pauseSlack is for how long a program has to be silent before a look asks whether it was paused meanwhile.
const pauseSlack = 10 * time.Second

// withPause adds a line to a log that has been silent where the engine remembers that the container was paused since: the
// silence of its program counts from the end of the pause. The memory of events is short, so that a pause may be missed.
func (c *Client) withPause(ctx context.Context, w wireContainer, lines iter.Seq2[sandbox.LogLine, error]) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		since, known := w.State.StartedAt, true
		for line, err := range lines {
			if !yield(line, err) {
				return
			}
			since, known = line.NotAfter, known && err == nil && !line.NotAfter.IsZero()
		}
		if !known || c.ServerNow().Sub(since) < pauseSlack {
			return
		}
		ahead, _ := c.Skew()
		more := time.Duration(0)
		if c.isPodman() { // its answer is empty where that time is not ahead (Podman 4.3)
			more = clockStep
		}
		events, err := c.remembered(ctx, "logs "+w.ID, w.ID, since.Add(ahead-clockStep), more)
		for _, e := range slices.Backward(events) {
			if err == nil && e.Event == "unpause" {
				at := e.At.Add(-ahead)
				yield(sandbox.LogLine{At: at, Stream: sandbox.LogNotice, Source: "engine", Text: "it was paused until " + at.UTC().Format(time.RFC3339)}, nil)
				return
			}
		}
	}
}

// ranBefore says that the present run, or the last one, was not the first.
func (w wireContainer) ranBefore() bool {
	return w.RestartCount > 0 || w.State.Running && !providers.ValidTime(w.State.FinishedAt).IsZero()
}

// engineLog is the engine's log of a container.
type engineLog struct {
	until time.Time // of earlier runs: when the present one began; zero = of all
	wirekit.LiveLog

	c   *Client
	id  string
	tty bool // one raw stream instead of frames
}

func (c *Client) newEngineLog(w wireContainer, op string, q providers.LogQuery) *engineLog {
	r := &engineLog{c: c, id: w.ID, tty: w.Config.Tty}
	if q.Previous {
		r.until = w.State.StartedAt
	}
	r.LiveLog = wirekit.LiveLog{Query: q, Since: q.Since, Profile: c.Profile, Op: op, Open: r.open, Copy: r.copyLines, GoesOn: r.goesOn}
	return r
}

func (r *engineLog) open(ctx context.Context) (*httpx.Stream, error) {
	query := url.Values{"stdout": {"1"}, "stderr": {"1"}, "timestamps": {"1"}}
	if r.Query.Tail > 0 {
		query.Set("tail", strconv.Itoa(r.Query.Tail))
	}
	if !r.Since.IsZero() {
		query.Set("since", secondsWithFraction(r.Since))
	}
	if !r.until.IsZero() {
		query.Set("until", secondsWithFraction(r.until))
	}
	if r.Query.Follow {
		query.Set("follow", "1")
	}
	request, err := r.c.request(ctx, httpx.Request{Op: r.Op, Path: httpx.Path("containers", r.id, "logs"), Query: query, Quiet: r.Query.Follow})
	if err != nil {
		return nil, err
	}
	s, err := r.c.API.Stream(ctx, request)
	return s, logFault(err)
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
func (r *engineLog) copyLines(body io.Reader, take func(sandbox.LogLine) error) error {
	if r.tty {
		return wirekit.CopyTimedLines(body, "stdout", take)
	}
	streams := map[bool]*logStream{false: newLogStream("stdout"), true: newLogStream("stderr")}
	err := eachFrame(body, func(stream byte, text []byte) error {
		return takeAll(streams[stream == streamStderr].add(text), take)
	})
	for _, isErr := range []bool{false, true} {
		if err == nil { // else what has not ended comes again, or is incomplete
			err = takeAll(streams[isErr].flush(), take)
		}
	}
	return err
}

func takeAll(lines []sandbox.LogLine, take func(sandbox.LogLine) error) error {
	for _, l := range lines {
		if err := take(l); err != nil {
			return err
		}
	}
	return nil
}

// logStream makes the lines of one stream out of messages.
type logStream struct {
	lines wirekit.LineSplitter
	began time.Time // of the line that has not ended
}

func newLogStream(name string) *logStream {
	return &logStream{lines: wirekit.LineSplitter{Stream: name}}
}

func (s *logStream) add(message []byte) []sandbox.LogLine {
	at, text := wirekit.CutTime(message)
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

// flush is the line that has not ended.
func (s *logStream) flush() []sandbox.LogLine {
	lines := s.lines.Flush(nil)
	for i := range lines {
		lines[i].At = s.began
	}
	return lines
}

// secondsWithFraction is a Unix time as the API takes it.
func secondsWithFraction(at time.Time) string {
	return fmt.Sprintf("%d.%09d", at.Unix(), at.Nanosecond())
}
