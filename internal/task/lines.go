package task

import (
	"bytes"
	"time"

	"sbx/internal/sandbox"
)

// longestLine is where a line without an end is cut, in bytes.
const longestLine = 64 << 10

// lineWriter turns a stream of bytes into lines for a pulse. One goroutine writes.
type lineWriter struct {
	p      *outputTracker
	stream string
	rest   []byte
}

func newLines(p *outputTracker, stream string) *lineWriter { return &lineWriter{p: p, stream: stream} }

// Write takes bytes as they come.
func (l *lineWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			l.rest = append(l.rest, b...)
			if len(l.rest) >= longestLine {
				l.flushRest()
			}
			break
		}
		l.rest = append(l.rest, b[:end]...)
		l.emitLine()
		b = b[end+1:]
	}
	return n, nil
}

// flushRest tells what has no end.
func (l *lineWriter) flushRest() {
	if len(l.rest) > 0 {
		l.emitLine()
	}
}

func (l *lineWriter) emitLine() {
	l.p.addLine(sandbox.LogLine{At: time.Now(), Stream: l.stream, Text: string(l.rest)})
	l.rest = l.rest[:0]
}
