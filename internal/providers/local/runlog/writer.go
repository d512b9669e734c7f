package runlog

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"
)

// MinCapBytes is the smallest cap: below it, one batch would not fit into half
// of it.
const MinCapBytes = 128 << 10

// batchBytes is what is collected for one write to disk. With one chunk per
// stream it is the memory of a Writer: about 64 KiB.
const batchBytes = 2 * ChunkBytes

// Writer keeps a program's output on disk, the newest within a cap. Its methods
// may be called from several goroutines.
type Writer struct {
	mu      sync.Mutex
	now     func() time.Time
	spool   *spool
	lines   [streams]line
	batch   []byte    // records that wait for the end of the call
	waiting amount    // what batch holds
	at      time.Time // of the call
	stamp   []byte    // at, formatted
	dropped int64
	last    time.Time
	closed  bool
}

// line is the line that a stream is in the middle of.
type line struct {
	text   []byte // of the line, not yet in a record; at most ChunkBytes
	open   bool   // bytes came since the last line end
	tag    byte   // of the stream's last record in the batch; 0 = none
	stored byte   // of the stream's last record on disk
	sever  bool   // its end was lost: what comes next must not be joined to it
}

// NewWriter makes a Writer for a sandbox's directory. At most capBytes stay on
// disk (at least MinCapBytes; a smaller figure means that one), and of the
// output the newest. Nothing is opened before the first byte, so that
// LastActivity is the program's and not the Writer's; a log that exists is
// continued.
func NewWriter(dir string, capBytes int64) *Writer {
	return &Writer{now: time.Now, spool: newSpool(dir, capBytes)}
}

// Stream gives the writer of one stream. It takes every byte at once and never
// fails; a line is on disk when the call that ends it returns. Any name but
// Stderr means Stdout, so that no output is lost to a name.
func (w *Writer) Stream(name Stream) io.Writer {
	return stream{w, streamAt(name.index())}
}

type stream struct {
	w    *Writer
	name Stream
}

// Write stores what it can and counts the rest as dropped; the error is nil.
func (s stream) Write(p []byte) (int, error) {
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(p) == 0:
		return 0, nil
	case w.closed:
		w.dropped += int64(len(p))
		return len(p), nil
	}
	w.begin()
	w.last = w.at
	w.take(s.name, p)
	w.store(false)
	return len(p), nil
}

// Flush stores the beginnings of lines that are not ended yet. Call it every
// heartbeat: what a prompt or a progress bar shows is then in the log, counts
// for LastActivity, and outlives the supervisor.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.begin()
	for i := range w.lines {
		if len(w.lines[i].text) > 0 {
			w.flushText(streamAt(i), part)
		}
	}
	w.store(false)
}

// EndLines ends the lines that are open, when whoever wrote them has ended and
// others write on.
func (w *Writer) EndLines() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.endLines()
		w.store(false)
	}
}

func (w *Writer) endLines() {
	w.begin()
	for i := range w.lines {
		if w.lines[i].open {
			w.flushText(streamAt(i), full)
			w.lines[i].open = false
		}
	}
}

// Close ends the lines that are open and closes the files. Bytes that come
// later are dropped. The error is the disk's, should the end of the log not be
// on it.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	w.endLines()
	w.store(true)
	return errors.Join(w.spool.err, w.spool.close())
}

// Dropped is how many bytes of text, line ends not counted, did not reach the
// disk because it was full or failing, or because the Writer was closed. What
// rotation removed is not among them.
func (w *Writer) Dropped() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// LastOutput is when the last byte came in, stored or not; false before the
// first. It is the inactivity clock of the supervisor, to which a full disk is
// no silence.
func (w *Writer) LastOutput() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, !w.last.IsZero()
}

// take splits bytes into lines.
func (w *Writer) take(name Stream, p []byte) {
	l := &w.lines[name.index()]
	for len(p) > 0 {
		text, rest, ended := bytes.Cut(p, []byte{'\n'})
		w.gather(name, text)
		if ended {
			w.flushText(name, full)
		}
		l.open, p = !ended, rest
	}
}

// gather adds to the open line. A chunk is written when more follows it, so
// that a line of exactly ChunkBytes is one full record.
func (w *Writer) gather(name Stream, text []byte) {
	l := &w.lines[name.index()]
	for len(text) > 0 {
		if len(l.text) == ChunkBytes {
			w.flushText(name, part)
		}
		n := min(ChunkBytes-len(l.text), len(text))
		l.text = append(l.text, text[:n]...)
		text = text[n:]
	}
}

// flushText turns what is gathered of a line into a record.
func (w *Writer) flushText(name Stream, tag byte) {
	l := &w.lines[name.index()]
	if l.sever {
		l.sever = false
		w.record(name, full, nil)
	}
	w.record(name, tag, l.text)
	l.text = l.text[:0]
}
