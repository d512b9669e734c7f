package runlog

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"sbx/internal/providers/local/plain"
)

// MinCapBytes is the smallest cap: one batch must fit into half of it.
const MinCapBytes = 128 << 10

// batchBytes is the size of one write to disk. With one chunk per stream it is the memory of a
// Writer: about 64 KiB.
const batchBytes = 2 * ChunkBytes

// Writer stores a program's output on disk, the newest within a cap. It is safe for concurrent
// use.
type Writer struct {
	mu      sync.Mutex
	now     func() time.Time
	spool   *spool
	lines   [streams]line
	batch   []byte    // records to be written at the end of the call
	waiting amount    // of the batch
	at      time.Time // of the call
	stamp   []byte    // at, formatted
	dropped int64
	closed  bool
}

// line is the incomplete line of a stream.
type line struct {
	text   []byte // not yet in a record; at most ChunkBytes
	open   bool   // bytes came since the last line end
	tag    byte   // of the stream's last record in the batch; 0 = none
	stored byte   // of the stream's last record on disk
	sever  bool   // its end was lost: the next record must not be joined to it
}

// NewWriter makes a Writer for a sandbox's directory. At most capBytes (at least MinCapBytes)
// of the newest output stay on disk. Nothing is opened before the first byte, so that
// LastActivity is the program's; an existing log is continued.
func NewWriter(dir string, capBytes int64) *Writer {
	return &Writer{now: time.Now, spool: newSpool(dir, capBytes)}
}

// Stream returns the writer of one stream. It accepts every byte at once and never fails; a
// line is on disk when the call that ends it returns. Any name but Stderr means Stdout.
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
	w.startBatch()
	w.writeLines(s.name, p)
	w.storeBatch(false)
	return len(p), nil
}

// Flush stores the incomplete lines. It is called at intervals: then a prompt or a progress
// bar is in the log, counts for LastActivity, and survives the supervisor.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.startBatch()
	for i := range w.lines {
		if len(w.lines[i].text) > 0 {
			w.flushText(streamAt(i), tagPart)
		}
	}
	w.storeBatch(false)
}

// EndLines ends the open lines, when the program that wrote them has ended and others continue
// to write.
func (w *Writer) EndLines() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.endLines()
		w.storeBatch(false)
	}
}

func (w *Writer) endLines() {
	w.startBatch()
	for i := range w.lines {
		if w.lines[i].open {
			w.flushText(streamAt(i), tagFull)
			w.lines[i].open = false
		}
	}
}

// Close ends the open lines and closes the files. Later bytes are dropped. The error is the
// disk's, if the end of the log could not be stored.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	w.endLines()
	w.storeBatch(true)
	return errors.Join(w.spool.err, w.spool.closeFile())
}

// Dropped is how many bytes of text, without line ends, were not stored because the disk was
// full or failing, or the Writer closed. What rotation removed is not included.
func (w *Writer) Dropped() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

func (w *Writer) writeLines(name Stream, p []byte) {
	l := &w.lines[name.index()]
	for len(p) > 0 {
		text, rest, ended := bytes.Cut(p, []byte{'\n'})
		w.addText(name, text)
		if ended {
			w.flushText(name, tagFull)
		}
		l.open, p = !ended, rest
	}
}

// addText adds to the open line. A chunk is written when more follows it, so that a line of
// exactly ChunkBytes is one full record.
func (w *Writer) addText(name Stream, text []byte) {
	l := &w.lines[name.index()]
	for len(text) > 0 {
		if len(l.text) == ChunkBytes {
			w.flushText(name, tagPart)
		}
		n := min(ChunkBytes-len(l.text), len(text))
		l.text = append(l.text, text[:n]...)
		text = text[n:]
	}
}

// flushText makes a record of the text of the open line.
func (w *Writer) flushText(name Stream, tag byte) {
	l := &w.lines[name.index()]
	if l.sever {
		l.sever = false
		w.addToBatch(name, tagFull, nil)
	}
	w.addToBatch(name, tag, l.text)
	l.text = l.text[:0]
}

// startBatch sets the time of the records of one call.
func (w *Writer) startBatch() {
	w.at = w.now()
	w.stamp = appendStamp(w.stamp[:0], w.at)
}

// addToBatch adds one record to the batch, after writing a full batch to disk.
func (w *Writer) addToBatch(name Stream, tag byte, text []byte) {
	if len(w.batch)+headBytes+len(text) > batchBytes {
		w.storeBatch(false)
	}
	w.batch = appendRecord(w.batch, w.stamp, name, tag, text)
	w.waiting.add(w.at, tag, text)
	w.lines[name.index()].tag = tag
}

// storeBatch writes the batch to disk, or counts it as dropped.
func (w *Writer) storeBatch(force bool) {
	if len(w.batch) == 0 {
		return
	}
	kept := w.spool.appendBatch(w.batch, w.waiting, w.at, force)
	if kept < len(w.batch) {
		w.countLost(kept)
	}
	for i := range w.lines {
		l := &w.lines[i]
		if kept == len(w.batch) && l.tag != 0 {
			l.stored = l.tag
		}
		l.tag = 0
	}
	w.batch, w.waiting = w.batch[:0], amount{}
}

// countLost handles a batch of which only the first kept bytes are on disk.
func (w *Writer) countLost(kept int) {
	for record := range bytes.Lines(w.batch) {
		there := record[:min(kept, len(record))]
		kept -= len(there)
		w.countLostRecord(record, there)
	}
}

// countLostRecord handles one record of which there is on disk. When the last stored record of
// a stream is a part and the next one is lost, the stream is severed: the end of its line
// never comes, and a reader would join another line to it.
func (w *Writer) countLostRecord(record, there []byte) {
	whole, _ := parseRecord(bytes.TrimSuffix(record, []byte{'\n'}))
	l := &w.lines[whole.stream.index()]
	w.dropped += int64(len(whole.text))
	if stored, ok := parseRecord(bytes.TrimSuffix(there, []byte{'\n'})); ok {
		w.dropped -= int64(len(stored.text))
		l.stored = stored.tag
	}
	if len(there) < len(record) {
		l.sever = l.stored == tagPart
	}
}

// retryAfter is how long the spool does not write after an error.
const retryAfter = time.Second

// spool is the two files of a Writer: it appends complete records, keeps both files together
// under the cap, and continues after a full or failing disk.
type spool struct {
	dir     string
	half    int64 // half of the cap: the largest size of one file
	file    *os.File
	size    int64
	torn    bool   // the file ends inside a record
	before  amount // of the output in earlier files
	here    amount // of the output in this file
	noHead  bool   // the head with before could not be written yet
	retryAt time.Time
	err     error                               // of the last attempt
	write   func(*os.File, []byte) (int, error) // (*os.File).Write, or a test's
}

func newSpool(dir string, capBytes int64) *spool {
	return &spool{dir: dir, half: max(capBytes, MinCapBytes) / 2, write: (*os.File).Write}
}

// appendBatch stores a batch of complete records with the given amount of output, and returns
// how many of its bytes are on disk; after an error the last record there may be torn, which
// stays, because a reader may have read it. Within retryAfter of an error it does not write,
// unless forced.
func (s *spool) appendBatch(batch []byte, holds amount, now time.Time, force bool) int {
	if !force && now.Before(s.retryAt) {
		return 0
	}
	kept, err := s.tryAppend(batch, holds)
	s.err = err
	if err != nil {
		s.retryAt = now.Add(retryAfter)
	}
	return kept
}

func (s *spool) tryAppend(batch []byte, holds amount) (int, error) {
	if err := s.openFile(); err != nil {
		return 0, err
	}
	if s.size > 0 && s.size+int64(len(batch))+1 > s.half { // 1 for endTornRecord
		if err := s.rotateFiles(); err != nil {
			return 0, err
		}
	}
	if err := s.endTornRecord(); err != nil {
		return 0, err
	}
	if err := s.writeHead(); err != nil {
		return 0, err
	}
	n, err := s.write(s.file, batch)
	s.size += int64(n)
	s.torn = n > 0 && batch[n-1] != '\n'
	if n < len(batch) {
		holds = countPiece(batch[:n])
	}
	s.here.addNext(holds)
	return n, err
}

// writeHead begins a file after a rotation with the amount of output before it, so that a
// reader knows what is missing once that is removed.
func (s *spool) writeHead() error {
	if !s.noHead {
		return nil
	}
	n, err := s.write(s.file, appendHead(nil, s.before))
	s.size += int64(n)
	s.noHead, s.torn = err != nil, err != nil && n > 0
	return err
}

// endTornRecord ends a torn record, so that the next one starts on a line of its own.
func (s *spool) endTornRecord() error {
	if !s.torn {
		return nil
	}
	n, err := s.write(s.file, []byte{'\n'})
	s.size += int64(n)
	s.torn = err != nil
	return err
}

// openFile continues the current file or makes a new one.
func (s *spool) openFile() error {
	if s.file != nil {
		return nil
	}
	file, err := plain.Open(currentPath(s.dir), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.file, s.size, s.torn = file, info.Size(), false
	if s.size > 0 {
		if s.before, s.here, err = countStored(file, s.size); err != nil {
			return errors.Join(err, s.closeFile())
		}
		s.noHead = false
		var last [1]byte
		_, err := file.ReadAt(last[:], s.size-1)
		s.torn = err != nil || last[0] != '\n'
	}
	return nil
}

// rotateFiles renames the current file to the older one and starts a new one. The file is
// closed first, because some systems do not rename open files.
func (s *spool) rotateFiles() error {
	if err := s.closeFile(); err != nil {
		return err
	}
	err := os.Rename(currentPath(s.dir), olderPath(s.dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.before.addNext(s.here)
	s.here, s.noHead = amount{}, true
	return s.openFile()
}

func (s *spool) closeFile() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
