package agentlog

import (
	"bufio"
	"errors"
	"io"
)

// MaxLine is the longest line that is read, in bytes: a change of a file with a diff of several MB
// fits, as JSON escapes it.
const MaxLine = 32 << 20

// lines reads the lines of a stream one by one, each into the same memory.
type lines struct {
	from   *bufio.Reader
	buffer []byte
	n      int   // lines that were read
	at     int64 // where the next line begins
	start  int64 // where the last line began
}

func newLines(r io.Reader) *lines { return &lines{from: bufio.NewReaderSize(r, 64<<10)} }

// line is a line of a stream; its text is valid until the next one is read.
type line struct {
	text  []byte
	long  bool // it is beyond MaxLine, and its text is left out
	ended bool // it ends with a newline
}

// next reads a line. At the end of the stream it is io.EOF, with the rest of the last line where there is one.
func (l *lines) next() (line, error) {
	var read line
	l.buffer, l.start = l.buffer[:0], l.at
	for {
		part, err := l.from.ReadSlice('\n')
		l.at += int64(len(part))
		if read.long = read.long || len(l.buffer)+len(part) > MaxLine; !read.long {
			l.buffer = append(l.buffer, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if l.at > l.start {
			l.n++
		}
		read.ended, read.text = err == nil, l.take(read.long)
		return read, err
	}
}

// take is what was gathered. Memory that one long line needed is released with the next.
func (l *lines) take(long bool) []byte {
	const usual = 1 << 20
	text := l.buffer
	if cap(l.buffer) > usual {
		l.buffer = nil
	}
	if long {
		return nil
	}
	return text
}
