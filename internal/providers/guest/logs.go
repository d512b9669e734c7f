package guest

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// The pace of following: as fast as a reader notices, then ever slower.
const (
	followMin = 250 * time.Millisecond
	followMax = 4 * time.Second
	// followOutage is how long nothing may answer before following gives up.
	followOutage = time.Minute
)

// Logs reads what a run has written, each stream in its order. The lines carry
// no time, so Since leaves nothing out but for a time to come. What was not kept
// is told by a line of the stream "sbx". Following ends with the program, with its
// sandbox, or with ctx.
func Logs(ctx context.Context, sh Shell, tag string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		r := &reading{sh: sh, tag: tag, out: partial{stream: "stdout"}, err: partial{stream: "stderr"}}
		err := r.all(ctx)
		if !q.Follow || r.ended {
			r.flush()
		}
		if q.Tail > 0 && len(r.lines) > q.Tail {
			r.lines = r.lines[len(r.lines)-q.Tail:]
		}
		if q.Since.After(time.Now()) {
			r.lines = nil // what has no time cannot be from the future
		}
		if !Give(r.take(), yield) {
			return
		}
		if err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		if q.Follow {
			r.follow(ctx, yield)
		}
	}
}

// Give yields lines; false when the reader has had enough.
func Give(lines []sandbox.LogLine, yield func(sandbox.LogLine, error) bool) bool {
	for _, l := range lines {
		if !yield(l, nil) {
			return false
		}
	}
	return true
}

// reading is one reader's place in a run's output.
type reading struct {
	sh       Shell
	tag      string
	at       Offsets
	out, err partial
	lines    []sandbox.LogLine // whole ones, not given yet
	ended    bool
	cut      bool // it was told that bytes are missing
}

// all reads until nothing more is there now.
func (r *reading) all(ctx context.Context) error {
	for {
		more, err := r.once(ctx)
		if err != nil || !more {
			return err
		}
	}
}

func (r *reading) once(ctx context.Context) (more bool, err error) {
	o, err := ReadSoFar(ctx, r.sh, r.tag, r.at)
	if err != nil {
		return false, err
	}
	if o.DroppedOut+o.DroppedErr > 0 {
		missing := o.DroppedOut + o.DroppedErr
		r.gap("older output was not kept", sandbox.LogGap{Bytes: &missing}, o.DroppedOut > 0, o.DroppedErr > 0)
	}
	if o.Cut && !r.cut {
		r.cut = true
		r.gap("output is missing that could not be written: is the disk full?", sandbox.LogGap{}, false, false)
	}
	r.at, r.ended = o.Next, o.Ended
	r.lines = r.out.add(o.Out, r.lines)
	r.lines = r.err.add(o.Err, r.lines)
	return o.More, nil
}

// gap tells of bytes that nobody can read: what was held of a line ends there, and
// what follows begins within one.
func (r *reading) gap(why string, missing sandbox.LogGap, out, err bool) {
	if out {
		r.lines = r.out.tear(r.lines)
	}
	if err {
		r.lines = r.err.tear(r.lines)
	}
	line := sandbox.MissingOutput(why, missing)
	line.Source = Source
	r.lines = append(r.lines, line)
}

// flush gives up waiting for line ends.
func (r *reading) flush() {
	r.lines = r.out.flush(r.lines, false)
	r.lines = r.err.flush(r.lines, false)
}

func (r *reading) take() []sandbox.LogLine {
	lines := r.lines
	r.lines = nil
	return lines
}

// follow looks again until the end. Where nothing answers for a while it goes on
// from its place afterwards.
func (r *reading) follow(ctx context.Context, yield func(sandbox.LogLine, error) bool) {
	answered := time.Now()
	for pause := followMin; !r.ended; {
		if err := Wait(ctx, pause); err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		err := r.all(ctx)
		lines := r.take()
		if !Give(lines, yield) {
			return
		}
		if kind := fault.KindOf(err); kind == fault.KindNotFound || kind == fault.KindGone {
			break
		}
		switch {
		case err == nil:
			answered = time.Now()
		case fault.KindOf(err) != fault.KindUnavailable || time.Since(answered) > followOutage:
			yield(sandbox.LogLine{}, err)
			return
		}
		if pause = min(2*pause, followMax); len(lines) > 0 {
			pause = followMin
		}
	}
	r.flush()
	Give(r.take(), yield)
}

// partial makes lines of a stream's pieces.
type partial struct {
	stream string
	text   []byte // of a line that has not ended
	torn   bool   // its beginning was not kept
}

// maxLine is how long one line may grow, in bytes; the rest makes another one.
const maxLine = 1 << 20

// add appends the lines that a piece has ended.
func (p *partial) add(piece []byte, lines []sandbox.LogLine) []sandbox.LogLine {
	p.text = append(p.text, piece...)
	for {
		end, skip := bytes.IndexByte(p.text, '\n'), 1
		long := end > maxLine || (end < 0 && len(p.text) > maxLine)
		if long {
			end, skip = maxLine, 0
		}
		if end < 0 {
			return lines
		}
		lines = append(lines, p.line(p.text[:end], long))
		p.text, p.torn = p.text[end+skip:], long
	}
}

// flush appends what has not ended, if there is any.
func (p *partial) flush(lines []sandbox.LogLine, truncated bool) []sandbox.LogLine {
	if len(p.text) > 0 {
		lines = append(lines, p.line(p.text, truncated))
	}
	p.text, p.torn = nil, false
	return lines
}

// tear is flush before bytes that nobody can read.
func (p *partial) tear(lines []sandbox.LogLine) []sandbox.LogLine {
	lines = p.flush(lines, true)
	p.torn = true
	return lines
}

func (p *partial) line(text []byte, truncated bool) sandbox.LogLine {
	return sandbox.LogLine{Stream: p.stream, Text: strings.TrimSuffix(string(text), "\r"), Truncated: truncated || p.torn, Source: Source}
}
