package runlog

import (
	"bytes"
	"time"

	"sbx/internal/sandbox"
)

// Stream is one of the two streams of a program.
type Stream string

// The streams, spelled as in the files and in sandbox.LogLine.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// streams is the number of streams; index orders them.
const streams = 2

func (s Stream) index() int {
	if s == Stderr {
		return 1
	}
	return 0
}

func streamAt(index int) Stream {
	if index == Stderr.index() {
		return Stderr
	}
	return Stdout
}

// ChunkBytes is the longest text of one record; a longer line is split. Container runtimes use
// the same value for this format.
const ChunkBytes = 16 << 10

// headBytes limits what precedes the text: a time with nanoseconds, the stream, the tag, the
// spaces and the line end.
const headBytes = 64

const (
	tagFull = 'F' // the line ends here
	tagPart = 'P' // the line continues in the stream's next record
)

// record is one line of the files. text points into the reader's buffer.
type record struct {
	at     time.Time
	stream Stream
	tag    byte
	text   []byte
}

func appendStamp(b []byte, at time.Time) []byte {
	return at.UTC().AppendFormat(b, time.RFC3339Nano)
}

// appendRecord appends one record with a time that is already formatted, since lines of one
// call share it.
func appendRecord(b, stamp []byte, stream Stream, tag byte, text []byte) []byte {
	b = append(b, stamp...)
	b = append(b, ' ')
	b = append(b, stream...)
	b = append(b, ' ', tag, ' ')
	b = append(b, text...)
	return append(b, '\n')
}

// parseRecord reads one line of a file, without its line end; false for other lines. The text
// may contain any byte but a line feed.
func parseRecord(line []byte) (record, bool) {
	stamp, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok {
		return record{}, false
	}
	name, rest, ok := bytes.Cut(rest, []byte{' '})
	if !ok || len(rest) < 2 || rest[1] != ' ' {
		return record{}, false
	}
	r := record{tag: rest[0], text: rest[2:]}
	if !r.stream.parseName(name) || (r.tag != tagFull && r.tag != tagPart) || r.at.UnmarshalText(stamp) != nil {
		return record{}, false
	}
	r.at = r.at.UTC()
	return r, true
}

// parseName compares instead of converting, which would allocate for each record.
func (s *Stream) parseName(name []byte) bool {
	switch string(name) {
	case string(Stdout):
		*s = Stdout
	case string(Stderr):
		*s = Stderr
	default:
		return false
	}
	return true
}

// MaxLineBytes is the longest text of a line for a reader; the rest of a longer line is left
// out and the line marked as truncated. It limits the memory of a reader.
const MaxLineBytes = 64 << 10

// joiner joins records to lines: it keeps the parts of a line, for each stream, until its end.
type joiner struct {
	open [streams]struct {
		line   sandbox.LogLine // without its text
		text   []byte
		active bool
	}
}

// addPart adds a record, and returns the line that it completes. A torn record lacks the end
// of its text.
func (j *joiner) addPart(r record, torn bool) (sandbox.LogLine, bool) {
	o := &j.open[r.stream.index()]
	if !o.active {
		o.line = sandbox.LogLine{At: r.at, Stream: string(r.stream)}
		o.active, o.text = true, o.text[:0]
	}
	n := min(len(r.text), MaxLineBytes-len(o.text))
	o.line.Truncated = o.line.Truncated || torn || n < len(r.text)
	o.text = append(o.text, r.text[:n]...)
	if r.tag == tagPart {
		return sandbox.LogLine{}, false
	}
	return j.endLine(r.stream.index()), true
}

func (j *joiner) endLine(index int) sandbox.LogLine {
	o := &j.open[index]
	o.active = false
	o.line.Text = string(o.text)
	return o.line
}

// openLines returns the incomplete lines and forgets them.
func (j *joiner) openLines() []sandbox.LogLine {
	var lines []sandbox.LogLine
	for i := range j.open {
		if j.open[i].active {
			lines = append(lines, j.endLine(i))
		}
	}
	return lines
}
