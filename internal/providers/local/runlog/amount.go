package runlog

import (
	"bytes"
	"io"
	"strconv"
	"time"

	"sbx/internal/sandbox"
)

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
	l := sandbox.MissingOutput("older output was dropped, because a log keeps the newest alone", sandbox.LogGap{Lines: &lines, Bytes: &size})
	l.At = head.until
	return l, true
}
