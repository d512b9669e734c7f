package task

import (
	"bytes"
	"time"

	"sbx/internal/sandbox"
)

// longestLine is where a line without an end is cut, in bytes.
const longestLine = 64 << 10

// lines turns a stream of bytes into lines for a pulse. One goroutine writes.
type lines struct {
	p      *pulse
	stream string
	rest   []byte
}

func newLines(p *pulse, stream string) *lines { return &lines{p: p, stream: stream} }

// Write takes bytes as they come.
func (l *lines) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			l.rest = append(l.rest, b...)
			if len(l.rest) >= longestLine {
				l.flush()
			}
			break
		}
		l.rest = append(l.rest, b[:end]...)
		l.tell()
		b = b[end+1:]
	}
	return n, nil
}

// flush tells what has no end.
func (l *lines) flush() {
	if len(l.rest) > 0 {
		l.tell()
	}
}

func (l *lines) tell() {
	l.p.line(sandbox.LogLine{At: time.Now(), Stream: l.stream, Text: string(l.rest)})
	l.rest = l.rest[:0]
}
