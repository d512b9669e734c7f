package runlog

import (
	"bytes"
	"errors"
	"io"
)

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
