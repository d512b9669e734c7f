package runlog

import (
	"bytes"
	"io"
	"strconv"
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
		grown  []byte    // the parts since the last report, at most MaxLineBytes
		bytes  int64     // of all parts
		at     time.Time // of the last part
	}
}

// addPart adds a record, and returns the line that it completes. A torn record lacks the end
// of its text.
func (j *joiner) addPart(r record, torn bool) (sandbox.LogLine, bool) {
	o := &j.open[r.stream.index()]
	if !o.active {
		o.line = sandbox.LogLine{At: r.at, Stream: string(r.stream)}
		o.active, o.text, o.grown, o.bytes = true, o.text[:0], o.grown[:0], 0
	}
	o.bytes, o.at = o.bytes+int64(len(r.text)), r.at
	o.grown = append(o.grown, r.text[:min(len(r.text), MaxLineBytes-len(o.grown))]...)
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

// grownLines returns the parts of the incomplete lines that it has not returned before.
func (j *joiner) grownLines() []sandbox.LogLine {
	var lines []sandbox.LogLine
	for i := range j.open {
		if o := &j.open[i]; o.active && len(o.grown) > 0 {
			lines = append(lines, sandbox.LogLine{At: o.at, Stream: o.line.Stream, Text: string(o.grown), OpenBytes: o.bytes})
			o.grown = o.grown[:0]
		}
	}
	return lines
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

// amount is the amount of output in a part of a log.
type amount struct {
	lines int64     // complete lines
	bytes int64     // of text, without line ends
	until time.Time // of the last record; zero = no record
}

func (a *amount) add(at time.Time, tag byte, text []byte) {
	if tag == tagFull {
		a.lines++
	}
	a.bytes += int64(len(text))
	a.until = at
}

func (a *amount) addNext(b amount) {
	a.lines, a.bytes = a.lines+b.lines, a.bytes+b.bytes
	if !b.until.IsZero() {
		a.until = b.until
	}
}

func countPiece(piece []byte) amount {
	var a amount
	for line := range bytes.Lines(piece) {
		if r, ok := parseRecord(bytes.TrimSuffix(line, []byte{'\n'})); ok {
			a.add(r.at, r.tag, r.text)
		}
	}
	return a
}

// countStored counts an existing file: the output stored before it, by its head, and the
// output in it.
func countStored(file io.ReaderAt, size int64) (before, here amount, err error) {
	lines := newScanner(io.NewSectionReader(file, 0, size))
	take := func(line []byte) {
		if head, ok := parseHead(line); ok {
			before = head
		} else if r, ok := parseRecord(line); ok {
			here.add(r.at, r.tag, r.text)
		}
	}
	for {
		line, err := lines.nextLine()
		if err == io.EOF { //nolint:errorlint // nextLine does not wrap it
			take(lines.takeRest())
			return before, here, nil
		}
		if err != nil {
			return before, here, err
		}
		take(line)
	}
}

// A head is the first line of a file after a rotation. It is no record, so that other readers
// of the format skip it:
//
//	<time of the last record before> sbx D <lines before> <bytes before> .
//
// The dot shows that the line is complete.
func appendHead(b []byte, before amount) []byte {
	b = appendStamp(b, before.until)
	b = append(b, " sbx D "...)
	b = strconv.AppendInt(b, before.lines, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, before.bytes, 10)
	return append(b, " .\n"...)
}

func parseHead(line []byte) (amount, bool) {
	words := bytes.Split(line, []byte{' '})
	var a amount
	if len(words) != 6 || string(words[1]) != "sbx" || string(words[2]) != "D" || string(words[5]) != "." || a.until.UnmarshalText(words[0]) != nil {
		return amount{}, false
	}
	var errLines, errBytes error
	a.lines, errLines = strconv.ParseInt(string(words[3]), 10, 64)
	a.bytes, errBytes = strconv.ParseInt(string(words[4]), 10, 64)
	return a, errLines == nil && errBytes == nil && a.lines >= 0 && a.bytes >= 0
}

// gapLine says how much output was stored between what was read so far and a head; false
// where there was none.
func (a amount) gapLine(head amount) (sandbox.LogLine, bool) {
	lines, size := head.lines-a.lines, head.bytes-a.bytes
	if lines <= 0 && size <= 0 {
		return sandbox.LogLine{}, false
	}
	l := sandbox.MissingOutput("older output was dropped: a log keeps only the newest", sandbox.LogGap{Lines: &lines, Bytes: &size})
	l.At = head.until
	return l, true
}
