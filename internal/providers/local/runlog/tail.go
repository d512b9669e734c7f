package runlog

import (
	"errors"
	"io"
)

// lookBack is how far, in bytes, a tail searches beyond its last n lines for
// what belongs to them: the parts of a line lie apart where the other stream
// wrote in between. It is 16 times MaxLineBytes, and walked in a millisecond.
const lookBack = 1 << 20

// place is where a forward read has to start.
type place struct {
	inCurrent bool
	offset    int64
	skip      int // lines that end at or after the offset and are not wanted
}

// findTail finds the last n lines from the end, so that the size of the log
// does not matter; size is that of the current file. n of 0 or less means all.
func findTail(files pair, size int64, n int, follow bool) (place, error) {
	if n <= 0 {
		return place{inCurrent: files.older == nil}, nil
	}
	t := &tailer{want: n, follow: follow, start: place{inCurrent: files.older == nil}}
	if files.current != nil {
		done, err := t.walk(files.current, size, true)
		if done || err != nil {
			return t.place(), err
		}
	}
	if files.older == nil {
		return t.placeOr(place{inCurrent: true}), nil
	}
	size, err := sizeOf(files.older)
	if err != nil {
		return place{}, err
	}
	_, err = t.walk(files.older, size, false)
	return t.placeOr(place{}), err
}

// tailer counts lines backwards.
type tailer struct {
	want   int
	follow bool // a line that has no end yet is not counted: its end is still to come
	found  int  // lines counted
	ends   int  // lines that end at or after where the walk is
	start  place
	total  int           // ends at start
	seen   [streams]bool // a record of the stream was met
	head   [streams]bool // parts of a wanted line may lie further back
	beyond int           // bytes walked since all lines were found
}

func (t *tailer) place() place {
	p := t.start
	p.skip = max(0, t.total-t.want)
	return p
}

// placeOr is the beginning of all where there are fewer lines than wanted: what was
// dropped before them is told there.
func (t *tailer) placeOr(beginning place) place {
	if t.found < t.want {
		return beginning
	}
	return t.place()
}

// walk goes through one file; true when no more has to be looked at.
func (t *tailer) walk(file io.ReaderAt, size int64, current bool) (bool, error) {
	lines := newBackward(file, size)
	for {
		offset, line, err := lines.prev()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		growing := t.follow && current && offset+int64(len(line)) == size
		if r, ok := parseRecord(line); ok && !growing && t.count(r) {
			t.start = place{inCurrent: current, offset: offset}
			t.total = t.ends
		}
		if t.enough(len(line)) {
			return true, nil
		}
	}
}

// count takes the record before the last one; true when the read has to start
// at it or before.
func (t *tailer) count(r record) bool {
	i := r.stream.index()
	open := r.tag == part && !t.seen[i]
	t.seen[i] = true
	switch {
	case open && t.follow:
		t.head[i] = true
	case open:
		t.ends++
		t.found++
		t.head[i] = true
	case r.tag == full:
		t.ends++
		t.head[i] = t.found < t.want
		if t.head[i] {
			t.found++
		}
	}
	return t.head[i]
}

// enough says that nothing before belongs to the lines wanted, or that the
// search has gone on for long enough. A stream without a record so far may have
// an open line, which is the last of all.
func (t *tailer) enough(walked int) bool {
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
