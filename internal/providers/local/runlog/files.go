// Package runlog is a local sandbox's output on disk: a Writer into which the supervisor
// copies the program's output, and Read for all others.
//
// The output is in two files of the sandbox's directory, output.log and the older
// output.log.1, in the line format of Kubernetes container logs, which other tools can read:
//
//	<RFC 3339 time, UTC> stdout|stderr F|P <bytes>\n
//
// A file after a rotation begins with a line that says how much output was stored before it
// (see appendHead), so that a reader knows what rotation has removed.
//
// F is a full line or the end of one, P a part of a line that continues in the next record of
// the same stream.
//
// The program must never wait for a failing disk, so the Writer returns no errors: what cannot
// be stored is counted and dropped. The meaning of a line (patterns, escapes, redaction) does
// not belong here, nor does anything that costs the supervisor memory.
package runlog

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sbx/internal/providers/local/plain"
)

// LastActivity is when the program last wrote output that was stored, by the times of the
// files; false when it has written nothing yet.
func LastActivity(dir string) (time.Time, bool) {
	var last time.Time
	for _, path := range []string{olderPath(dir), currentPath(dir)} {
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && info.Size() > 0 && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last, !last.IsZero()
}

// filePair is the two files of a log at one moment; a missing one is nil.
type filePair struct {
	older, current *os.File
}

// openAttempts limits the retries of openPair. A rotation needs 64 KiB of output and an attempt
// three system calls, so a second attempt is rare.
const openAttempts = 16

// openPair opens both files without a rotation in between: the current one is still current
// after the older one was opened.
func openPair(dir string) (filePair, error) { return openPairBy(openIfThere, dir) }

func openPairBy(open func(string) (*os.File, error), dir string) (filePair, error) {
	for attempt := 1; ; attempt++ {
		current, err := open(currentPath(dir))
		if err != nil {
			return filePair{}, err
		}
		older, err := open(olderPath(dir))
		p := filePair{older, current}
		if err != nil {
			p.closeFiles()
			return filePair{}, err
		}
		if attempt == openAttempts || isCurrent(dir, current) {
			return p, nil
		}
		p.closeFiles()
	}
}

func openIfThere(path string) (*os.File, error) {
	file, err := plain.Open(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // see filePair
	}
	return file, err
}

// isCurrent reports whether the Writer appends to this file; a nil file is current when there
// is none.
func isCurrent(dir string, file *os.File) bool {
	there, err := os.Stat(currentPath(dir))
	if err != nil {
		return file == nil
	}
	return sameFile(file, there)
}

func sameFile(file *os.File, info fs.FileInfo) bool {
	if file == nil || info == nil {
		return false
	}
	own, err := file.Stat()
	return err == nil && os.SameFile(own, info)
}

func (p filePair) closeFiles() {
	for _, file := range []*os.File{p.older, p.current} {
		if file != nil {
			file.Close()
		}
	}
}

func openFileSize(file *os.File) (int64, error) {
	if file == nil {
		return 0, nil
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

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
// size is the size of the current file. n of 0 or less means all.
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

const (
	currentName = "output.log"
	olderName   = "output.log.1"
)

func currentPath(dir string) string { return filepath.Join(dir, currentName) }

func olderPath(dir string) string { return filepath.Join(dir, olderName) }
