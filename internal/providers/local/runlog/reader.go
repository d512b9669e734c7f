package runlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"os"
	"time"

	"sbx/internal/sandbox"
)

// reader is the state of one read of a log.
type reader struct {
	dir    string
	follow bool
	open   bool // reports lines that have not ended
	done   <-chan struct{}
	emit   func(sandbox.LogLine) error
	notify *notifier
	skip   int    // lines before the first one wanted
	passed amount // output read so far
	placed bool   // passed counts from the beginning of the output
	joiner joiner
	file   *os.File // the current one; nil without one
	source *io.SectionReader
	lines  *scanner
}

// readAndFollow reads what exists, and then follows. The watch begins first, so that no change in
// between is missed.
func (r *reader) readAndFollow(ctx context.Context, tail int, notify func(string) *notifier) error {
	if r.follow {
		r.notify = notify(r.dir)
	}
	files, err := openPair(r.dir)
	if err != nil {
		return err
	}
	defer func() { files.closeFiles() }()
	size, err := openFileSize(files.current)
	if err != nil {
		return err
	}
	start, err := findTail(files, size, tail, r.follow)
	if err != nil {
		return err
	}
	r.skip = start.skip
	r.placed = start.offset == 0 && start.inCurrent == (files.older == nil)
	if !start.inCurrent && files.older != nil {
		r.switchTo(files.older, start.offset, math.MaxInt64)
		files.older, start.offset = nil, 0
		if err := r.finishFile(ctx); err != nil {
			return err
		}
	}
	if files.current != nil {
		r.switchTo(files.current, start.offset, size)
		files.current = nil
	}
	if !r.follow {
		return r.finishLog(ctx)
	}
	return r.followLog(ctx)
}

// switchTo replaces the current file, from an offset. Without follow it is read up to the
// limit, its size at the call.
func (r *reader) switchTo(file *os.File, offset, limit int64) {
	if r.file != nil && r.file != file {
		r.file.Close()
	}
	r.file, r.source, r.lines = file, nil, nil
	if file == nil {
		return
	}
	if r.follow {
		limit = math.MaxInt64
	}
	r.source = io.NewSectionReader(file, 0, limit)
	r.source.Seek(offset, io.SeekStart) //nolint:errcheck // fails for negative offsets only
	r.lines = newScanner(r.source)
}

func (r *reader) emitLines(ctx context.Context) error {
	if r.lines == nil {
		return ctx.Err()
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := r.lines.nextLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.handleRecord(line, false); err != nil {
			return err
		}
	}
}

// finishFile emits the rest of a file that no longer grows, with a torn record at its end.
func (r *reader) finishFile(ctx context.Context) error {
	if err := r.emitLines(ctx); err != nil || r.lines == nil {
		return err
	}
	return r.handleRecord(r.lines.takeRest(), true)
}

// finishLog finishes the last file, with the incomplete lines.
func (r *reader) finishLog(ctx context.Context) error {
	if err := r.finishFile(ctx); err != nil {
		return err
	}
	return r.endOpenLines(false)
}

func (r *reader) endOpenLines(truncated bool) error {
	for _, l := range r.joiner.openLines() {
		l.Truncated = l.Truncated || truncated
		if err := r.emitLine(l); err != nil {
			return err
		}
	}
	return nil
}

// reportOpenLines emits what the lines that have not ended have grown by.
func (r *reader) reportOpenLines() error {
	if !r.open || r.skip > 0 {
		return nil
	}
	for _, l := range r.joiner.grownLines() {
		if err := r.emit(l); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) handleRecord(line []byte, torn bool) error {
	rec, ok := parseRecord(line)
	if !ok {
		return r.handleHead(line)
	}
	r.passed.add(rec.at, rec.tag, rec.text)
	l, ended := r.joiner.addPart(rec, torn)
	if !ended {
		return nil
	}
	return r.emitLine(l)
}

// handleHead compares the head of a file with what was read before, and emits the gap.
func (r *reader) handleHead(line []byte) error {
	before, ok := parseHead(line)
	if !ok {
		return nil
	}
	gap, found := r.passed.gapLine(before)
	placed := r.placed
	r.passed, r.placed = before, true
	if !placed || !found {
		return nil
	}
	return r.emit(gap)
}

func (r *reader) emitLine(l sandbox.LogLine) error {
	if r.skip > 0 {
		r.skip--
		return nil
	}
	return r.emit(l)
}

func (r *reader) closeReader() {
	r.switchTo(nil, 0, 0)
	if r.notify != nil {
		r.notify.closeWatch()
	}
}

// Query selects lines.
type Query struct {
	Since  time.Time // lines before it are left out; zero = from the start
	Tail   int       // the last n lines; 0 or less = all
	Follow bool      // continue until Done is closed and everything is read
	Open   bool      // with Follow, also report lines that have grown and not ended
	// Done is closed when the sandbox has ended and its Writer is closed. With nil, only ctx
	// ends a Follow.
	Done <-chan struct{}
}

// Read yields the lines of a sandbox's output in the order of their ends, oldest first.
// Missing files have no lines, malformed records are skipped, output that rotation has removed
// is a line with a Gap, and a line that is cut off at the end of the files or by a rotation is
// yielded as far as it exists, marked as truncated. After a rotation the first line may be the
// end of a longer one.
//
// Without Follow it yields what exists at the call. With Follow it ends without an error when
// Done is closed or the directory is removed. The end of ctx yields its error: the output was
// not read to its end. Any other error is the disk's. An error is the last item.
func Read(ctx context.Context, dir string, q Query) iter.Seq2[sandbox.LogLine, error] {
	return readWith(ctx, dir, q, newNotifier)
}

// errStopped is the consumer's break out of the loop.
var errStopped = errors.New("the reader was stopped")

func readWith(ctx context.Context, dir string, q Query, notify func(string) *notifier) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		r := &reader{dir: dir, follow: q.Follow, open: q.Follow && q.Open, done: q.Done}
		r.emit = func(l sandbox.LogLine) error {
			if !l.At.Before(q.Since) && !yield(l, nil) {
				return errStopped
			}
			return nil
		}
		defer r.closeReader()
		err := r.readAndFollow(ctx, q.Tail, notify)
		if err != nil && !errors.Is(err, errStopped) {
			yield(sandbox.LogLine{}, err)
		}
	}
}

// windowBytes limits the length of lines; a line of that length or more is skipped as
// malformed, since a record is not much longer than ChunkBytes.
const windowBytes = 128 << 10

// scanner splits a growing file into lines. Unlike bufio's, it continues after the end of the
// file, and returns a line only when it is complete.
type scanner struct {
	source io.Reader
	buf    []byte
	lo, hi int  // buf[lo:hi] is not returned yet
	skip   bool // inside a line that is too long
}

func newScanner(source io.Reader) *scanner {
	return &scanner{source: source, buf: make([]byte, windowBytes)}
}

// nextLine returns the next complete line without its line end, valid until the next call;
// io.EOF when there is none now.
func (s *scanner) nextLine() ([]byte, error) {
	for {
		if i := bytes.IndexByte(s.buf[s.lo:s.hi], '\n'); i >= 0 {
			line := s.buf[s.lo : s.lo+i]
			s.lo += i + 1
			if s.skip {
				s.skip = false
				continue
			}
			return line, nil
		}
		if err := s.fillBuffer(); err != nil {
			return nil, err
		}
	}
}

func (s *scanner) fillBuffer() error {
	if s.hi-s.lo == len(s.buf) {
		s.lo, s.hi, s.skip = 0, 0, true
	}
	if s.lo > 0 {
		copy(s.buf, s.buf[s.lo:s.hi])
		s.lo, s.hi = 0, s.hi-s.lo
	}
	n, err := s.source.Read(s.buf[s.hi:])
	s.hi += n
	switch {
	case n > 0:
		return nil
	case err == nil:
		return io.ErrNoProgress
	default:
		return err
	}
}

// takeRest returns the text after the last line end, once; empty when the file ends with one.
func (s *scanner) takeRest() []byte {
	rest := s.buf[s.lo:s.hi]
	s.lo, s.hi = 0, 0
	if s.skip {
		return nil
	}
	return rest
}

// reverseScanner splits a file into lines from its end.
type reverseScanner struct {
	source io.ReaderAt
	end    int64 // end of the next line
	buf    []byte
	lo     int64 // offset of buf in the file
	n      int   // bytes in buf
}

func newReverseScanner(source io.ReaderAt, size int64) *reverseScanner {
	return &reverseScanner{source: source, end: size, buf: make([]byte, windowBytes+1)}
}

// prevLine returns the line before the last one returned, without its line end, and its
// offset; io.EOF at the start of the file. The line is nil when it is too long, and valid
// until the next call.
func (b *reverseScanner) prevLine() (int64, []byte, error) {
	if b.end <= 0 {
		return 0, nil, io.EOF
	}
	long := false
	for {
		held := b.bufferedBytes()
		body := held
		if !long {
			body = bytes.TrimSuffix(held, []byte{'\n'})
		}
		i := bytes.LastIndexByte(body, '\n')
		switch {
		case len(held) > 0 && (i >= 0 || b.lo == 0):
			b.end = b.lo + int64(i) + 1
			if long || len(body)-(i+1) >= windowBytes {
				return b.end, nil, nil
			}
			return b.end, body[i+1:], nil
		case len(held) == len(b.buf):
			long, b.end = true, b.lo
		}
		if err := b.loadBuffer(); err != nil {
			return 0, nil, err
		}
	}
}

// bufferedBytes is the content of buf before end.
func (b *reverseScanner) bufferedBytes() []byte {
	if b.n == 0 || b.end <= b.lo || b.end > b.lo+int64(b.n) {
		return nil
	}
	return b.buf[:b.end-b.lo]
}

func (b *reverseScanner) loadBuffer() error {
	b.lo = max(0, b.end-int64(len(b.buf)))
	n, err := b.source.ReadAt(b.buf[:b.end-b.lo], b.lo)
	b.n = n
	if int64(n) == b.end-b.lo {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF // the file was truncated
	}
	return err
}
