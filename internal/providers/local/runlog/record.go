package runlog

import (
	"bytes"
	"time"
)

// Stream is one of the two streams of a program.
type Stream string

// The streams, spelled as in the files and in sandbox.LogLine.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// streams is how many there are; index orders them.
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

// ChunkBytes is the most text one record holds; a longer line is split. The
// figure is the one that container runtimes use for the same format.
const ChunkBytes = 16 << 10

// headBytes bounds what stands before the text: a time with nanoseconds, the
// stream, the tag, the spaces and the line end.
const headBytes = 64

const (
	full = 'F' // the line ends here
	part = 'P' // the line goes on in the stream's next record
)

// record is one line of the files. text points into the reader's buffer.
type record struct {
	at     time.Time
	stream Stream
	tag    byte
	text   []byte
}

// appendStamp writes the time of a record.
func appendStamp(b []byte, at time.Time) []byte {
	return at.UTC().AppendFormat(b, time.RFC3339Nano)
}

// appendRecord writes one record with a time that is formatted already: lines
// that arrive together share it.
func appendRecord(b, stamp []byte, stream Stream, tag byte, text []byte) []byte {
	b = append(b, stamp...)
	b = append(b, ' ')
	b = append(b, stream...)
	b = append(b, ' ', tag, ' ')
	b = append(b, text...)
	return append(b, '\n')
}

// parseRecord reads one line of a file, without its line end; false for what
// is no record. The text may hold any byte but a line feed.
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
	if !r.stream.parse(name) || (r.tag != full && r.tag != part) || r.at.UnmarshalText(stamp) != nil {
		return record{}, false
	}
	r.at = r.at.UTC()
	return r, true
}

// parse compares instead of converting, which would cost an allocation per record.
func (s *Stream) parse(name []byte) bool {
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
