package runlog

import (
	"bytes"
	"errors"
	"io"
)

// windowBytes bounds the lines that are looked at; one of that length or more is
// garbage, because a record is hardly longer than ChunkBytes.
const windowBytes = 128 << 10

// scanner cuts a file that may still grow into lines. Unlike bufio's, it goes
// on after the end of the file, and holds a line back until it is whole.
type scanner struct {
	source io.Reader
	buf    []byte
	lo, hi int  // buf[lo:hi] is not handed out yet
	skip   bool // inside a line that is too long
}

func newScanner(source io.Reader) *scanner {
	return &scanner{source: source, buf: make([]byte, windowBytes)}
}

// next gives the next whole line without its line end, valid until the next
// call; io.EOF when there is none now.
func (s *scanner) next() ([]byte, error) {
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
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
}

func (s *scanner) fill() error {
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

// takeRest gives what stands behind the last line end, once; empty when the file
// ends well.
func (s *scanner) takeRest() []byte {
	rest := s.buf[s.lo:s.hi]
	s.lo, s.hi = 0, 0
	if s.skip {
		return nil
	}
	return rest
}

// backward cuts a file into lines from its end.
type backward struct {
	source io.ReaderAt
	end    int64 // where the next line ends
	buf    []byte
	lo     int64 // where buf stands in the file
	n      int   // bytes in buf
}

func newBackward(source io.ReaderAt, size int64) *backward {
	return &backward{source: source, end: size, buf: make([]byte, windowBytes+1)}
}

// prev gives the line before the last one given, without its line end, and
// where it starts; io.EOF at the start of the file. The line is nil when it is
// too long, and valid until the next call.
func (b *backward) prev() (int64, []byte, error) {
	if b.end <= 0 {
		return 0, nil, io.EOF
	}
	long := false
	for {
		held := b.held()
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
		if err := b.load(); err != nil {
			return 0, nil, err
		}
	}
}

// held is what buf holds of the file before end.
func (b *backward) held() []byte {
	if b.n == 0 || b.end <= b.lo || b.end > b.lo+int64(b.n) {
		return nil
	}
	return b.buf[:b.end-b.lo]
}

func (b *backward) load() error {
	b.lo = max(0, b.end-int64(len(b.buf)))
	n, err := b.source.ReadAt(b.buf[:b.end-b.lo], b.lo)
	b.n = n
	if int64(n) == b.end-b.lo {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF // the file shrank
	}
	return err
}
