package runlog

import (
	"errors"
	"io"
)

// lookBack is how far, in bytes, a tail searches before its last n lines for their beginnings:
// the parts of a line are apart where the other stream wrote in between. It is 16 times
// MaxLineBytes, which takes a millisecond.
const lookBack = 1 << 20

// readStart is where a forward read starts.
type readStart struct {
	inCurrent bool
	offset    int64
	skip      int // lines that end at or after the offset and are not wanted
}

// findTail finds the last n lines from the end, so that the size of the log does not matter;
// size is that of the current file. n of 0 or less means all.
func findTail(files filePair, size int64, n int, follow bool) (readStart, error) {
	if n <= 0 {
		return readStart{inCurrent: files.older == nil}, nil
	}
	t := &tailer{want: n, follow: follow, start: readStart{inCurrent: files.older == nil}}
	if files.current != nil {
		done, err := t.walkFile(files.current, size, true)
		if done || err != nil {
			return t.startPlace(), err
		}
	}
	if files.older == nil {
		return t.startOr(readStart{inCurrent: true}), nil
	}
	size, err := openFileSize(files.older)
	if err != nil {
		return readStart{}, err
	}
	_, err = t.walkFile(files.older, size, false)
	return t.startOr(readStart{}), err
}

// tailer counts lines backwards.
type tailer struct {
	want   int
	follow bool // an incomplete line is not counted: its end is still to come
	found  int  // lines counted
	ends   int  // lines that end at or after the current position
	start  readStart
	total  int           // ends at start
	seen   [streams]bool // the stream has a record
	head   [streams]bool // parts of a wanted line may be further back
	beyond int           // bytes searched since all lines were found
}

func (t *tailer) startPlace() readStart {
	p := t.start
	p.skip = max(0, t.total-t.want)
	return p
}

// startOr returns beginning where there are fewer lines than wanted: the gap before them is
// reported there.
func (t *tailer) startOr(beginning readStart) readStart {
	if t.found < t.want {
		return beginning
	}
	return t.startPlace()
}

// walkFile goes backwards through one file; true when the search is complete.
func (t *tailer) walkFile(file io.ReaderAt, size int64, current bool) (bool, error) {
	lines := newReverseScanner(file, size)
	for {
		offset, line, err := lines.prevLine()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		growing := t.follow && current && offset+int64(len(line)) == size
		if r, ok := parseRecord(line); ok && !growing && t.countRecord(r) {
			t.start = readStart{inCurrent: current, offset: offset}
			t.total = t.ends
		}
		if t.foundAll(len(line)) {
			return true, nil
		}
	}
}

// countRecord handles the record before the last one; true when the read has to start at it or
// before.
func (t *tailer) countRecord(r record) bool {
	i := r.stream.index()
	open := r.tag == tagPart && !t.seen[i]
	t.seen[i] = true
	switch {
	case open && t.follow:
		t.head[i] = true
	case open:
		t.ends++
		t.found++
		t.head[i] = true
	case r.tag == tagFull:
		t.ends++
		t.head[i] = t.found < t.want
		if t.head[i] {
			t.found++
		}
	}
	return t.head[i]
}

// foundAll reports whether nothing before belongs to the wanted lines, or the search has gone
// on for lookBack. A stream without a record so far may have an open line, which is the last.
func (t *tailer) foundAll(walked int) bool {
	if t.found < t.want {
		return false
	}
	t.beyond += walked
	settled := true
	for i := range streams {
		settled = settled && t.seen[i] && !t.head[i]
	}
	return settled || t.beyond > lookBack
}
