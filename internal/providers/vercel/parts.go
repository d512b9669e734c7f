package vercel

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"unicode/utf8"
)

const (
	// maxLine is the longest line of a stream that is held in memory, in bytes.
	maxLine = 16 << 20
	// partSize is from which size on a line of output is given on in parts: the service writes a chunk of
	// output into one line, and lines of more than 8 MiB were measured.
	partSize = 1 << 20
)

// outputHead is the beginning of a line of output up to its text, in the order that is documented.
var outputHead = regexp.MustCompile(`^\s*\{\s*"stream"\s*:\s*"(stdout|stderr)"\s*,\s*"data"\s*:\s*"`)

// streamLines reads the lines of a stream. A long line of output comes as several, so that memory is bounded
// whatever a program writes at once.
type streamLines struct {
	r    *bufio.Reader
	line []byte // what was read of the present line
	took int    // how much of it was given
	part string // the stream of a line that is given in parts; "" = it is not
}

func newStreamLines(r io.Reader) *streamLines { return &streamLines{r: bufio.NewReaderSize(r, 64<<10)} }

// next is the next line, or part of a line as a line of its own; it is valid until the next call. The error at the
// regular end is io.EOF; a line before any other error is cut off.
func (s *streamLines) next() ([]byte, error) {
	s.line, s.took = s.line[:copy(s.line, s.line[s.took:])], 0
	for {
		if s.part != "" {
			if part, ready, err := s.nextPart(); ready || err != nil {
				return part, err
			}
		}
		more, err := s.r.ReadSlice('\n')
		s.line = append(s.line, more...)
		switch {
		case s.part != "" && len(more) > 0: // what follows an error comes again
		case s.part != "" && errors.Is(err, io.EOF):
			return nil, errStream // the line is cut off
		case s.part != "":
			return nil, err
		case err == nil, errors.Is(err, io.EOF) && len(s.line) > 0:
			s.took = len(s.line)
			return bytes.TrimSuffix(s.line, []byte("\n")), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			s.took = len(s.line)
			return s.line, err
		case len(s.line) > partSize && outputHead.Match(s.line):
			head := outputHead.FindSubmatchIndex(s.line)
			s.part = string(s.line[head[2]:head[3]])
			s.line = s.line[:copy(s.line, s.line[head[1]:])]
		case len(s.line) > maxLine:
			return nil, errLong
		}
	}
}

// nextPart is what there is of the text of a line that is given in parts; false = more has to be read first.
func (s *streamLines) nextPart() ([]byte, bool, error) {
	end, whole := textEnd(s.line)
	switch {
	case end == 0 && !whole:
		return nil, false, nil
	case bytes.IndexByte(s.line[:end], '\n') >= 0:
		return nil, false, errStream // the line ends inside its text
	}
	part := append([]byte(`{"stream":`+strconv.Quote(s.part)+`,"data":"`), s.line[:end]...)
	s.took = end
	if whole {
		s.part = ""
		if err := s.skipRest(); err != nil {
			return nil, false, err
		}
	}
	return append(part, `"}`...), true, nil
}

// skipRest skips what stands behind the text of a line.
func (s *streamLines) skipRest() error {
	if i := bytes.IndexByte(s.line[s.took:], '\n'); i >= 0 {
		s.took += i + 1
		return nil
	}
	s.took = len(s.line)
	for {
		switch _, err := s.r.ReadSlice('\n'); {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}

// escapeLength is the length of an escape \uXXXX, with a second one behind it where both are one letter.
func escapeLength(text []byte) int {
	const one = len(`\u0000`)
	first := len(text) > 3 && (text[2] == 'd' || text[2] == 'D') && text[3] >= '8' // the first half of a letter, or the second
	if behind := text[min(one, len(text)):]; first && (len(behind) < 2 || behind[0] == '\\' && behind[1] == 'u') && !bytes.HasPrefix(behind, []byte(`"`)) {
		return 2 * one
	}
	return one
}

// textEnd is where the text of a JSON string ends (true), else up to where it can be cut.
func textEnd(text []byte) (end int, whole bool) {
	for i := 0; i < len(text); {
		n := 1
		switch b := text[i]; {
		case b == '"':
			return i, true
		case b == '\\' && i+1 < len(text) && text[i+1] == 'u':
			n = escapeLength(text[i:])
		case b == '\\':
			n = 2
		case b >= utf8.RuneSelf && !utf8.FullRune(text[i:]):
			return i, false
		case b >= utf8.RuneSelf:
			_, n = utf8.DecodeRune(text[i:])
		}
		if i+n > len(text) {
			return i, false
		}
		i += n
	}
	return len(text), false
}
