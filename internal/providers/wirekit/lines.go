package wirekit

import (
	"bytes"
	"context"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/sandbox"
)

// LastLines are the last n lines; all of them where n is 0.
func LastLines(lines []sandbox.LogLine, n int) []sandbox.LogLine {
	if n <= 0 {
		return lines
	}
	return lines[max(0, len(lines)-n):]
}

// YieldLines yields lines; false when the reader wants no more.
func YieldLines(lines []sandbox.LogLine, yield func(sandbox.LogLine, error) bool) bool {
	for _, l := range lines {
		if !yield(l, nil) {
			return false
		}
	}
	return true
}

// Follow reads a log again and again, at pauses that double from First to Longest and
// begin anew with each line.
type Follow struct {
	First, Longest time.Duration
	Outage         time.Duration // how long read may fail with fault.KindUnavailable; 0 = not at all
	Profile, Op    string        // of the error for the end of ctx
}

// Run yields the lines of each read until read says that the log has ended, which is a
// plain end, until it fails, or until ctx ends. It pauses before the first read.
func (f Follow) Run(ctx context.Context, read func(context.Context) (lines []sandbox.LogLine, ended bool, err error), yield func(sandbox.LogLine, error) bool) {
	pauses, answered := poll.NewBackoff(f.First, f.Longest), time.Now()
	for {
		if pauses.Sleep(ctx) != nil {
			yield(sandbox.LogLine{}, fault.Placed(ContextFault(ctx), f.Profile, f.Op))
			return
		}
		lines, ended, err := read(ctx)
		if !YieldLines(lines, yield) {
			return
		}
		switch {
		case err == nil && ended:
			return
		case err == nil:
			answered = time.Now()
		case fault.KindOf(err) != fault.KindUnavailable || time.Since(answered) >= f.Outage:
			yield(sandbox.LogLine{}, err)
			return
		}
		if len(lines) > 0 {
			pauses.Reset()
		}
	}
}

// maxLine is how long one line may grow, in bytes; the rest becomes another line.
const maxLine = 1 << 20

// LineSplitter makes the lines of one stream out of its pieces.
type LineSplitter struct {
	Stream, Source string

	text []byte // of the line that has not ended
	said int    // bytes of text that AddGrowth has reported
	torn bool   // the beginning of that line is missing
}

// Add appends the lines that a piece has ended to lines.
func (s *LineSplitter) Add(piece []byte, lines []sandbox.LogLine) []sandbox.LogLine {
	s.text = append(s.text, piece...)
	for {
		end, skip := bytes.IndexByte(s.text, '\n'), 1
		long := end > maxLine || (end < 0 && len(s.text) > maxLine)
		if long {
			end, skip = maxLine, 0
		}
		if end < 0 {
			return lines
		}
		lines = append(lines, s.newLine(s.text[:end], long))
		s.text, s.said, s.torn = s.text[end+skip:], 0, long
	}
}

// AddGrowth appends what the line that has not ended has grown by since the last call, if it has.
func (s *LineSplitter) AddGrowth(lines []sandbox.LogLine) []sandbox.LogLine {
	if len(s.text) == s.said {
		return lines
	}
	l := sandbox.LogLine{Stream: s.Stream, Text: string(s.text[s.said:]), Source: s.Source, OpenBytes: int64(len(s.text))}
	s.said = len(s.text)
	return append(lines, l)
}

// Flush appends the line that has not ended, if there is one.
func (s *LineSplitter) Flush(lines []sandbox.LogLine) []sandbox.LogLine {
	return s.flushLine(lines, false)
}

// Tear is Flush before bytes that are lost: that line and the next one are truncated.
func (s *LineSplitter) Tear(lines []sandbox.LogLine) []sandbox.LogLine {
	lines = s.flushLine(lines, true)
	s.torn = true
	return lines
}

func (s *LineSplitter) flushLine(lines []sandbox.LogLine, truncated bool) []sandbox.LogLine {
	if len(s.text) > 0 {
		lines = append(lines, s.newLine(s.text, truncated))
	}
	s.text, s.said, s.torn = nil, 0, false
	return lines
}

func (s *LineSplitter) newLine(text []byte, truncated bool) sandbox.LogLine {
	return sandbox.LogLine{Stream: s.Stream, Text: strings.TrimSuffix(string(text), "\r"), Truncated: truncated || s.torn, Source: s.Source}
}

// Tail keeps the last 4 KiB of a stream.
type Tail struct{ text []byte }

// Add appends a piece.
func (t *Tail) Add(piece []byte) {
	t.text = append(t.text, piece...)
	t.text = t.text[max(0, len(t.text)-4<<10):]
}

// String is the text that was kept.
func (t *Tail) String() string { return string(t.text) }

// Lines are the lines of that text; nil without text.
func (t *Tail) Lines() []string {
	if len(t.text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(t.text), "\n"), "\n")
}
