package vercel

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxLine is how long one line of a stream may be, in bytes. The service writes a chunk
// of output into one line, and lines of more than 8 MiB were measured.
const maxLine = 64 << 20

// errLong says that one line of a stream is longer than maxLine. No connection was lost.
var errLong = fmt.Errorf("%w: one piece of it is longer than %d MiB", errStream, maxLine>>20)

// errEarly says that a stream ended without its last line: what it told of is
// not known to have ended.
var errEarly = errors.New("the stream ended early")

// errStream is what every refused line wraps.
var errStream = errors.New("the stream is not understood")

// failure is an error that came in the middle of a stream, whose status was 200.
type failure struct{ wireFailure }

// Error says what the service said.
func (f failure) Error() string { return f.Code + ": " + f.Message }

// lines reads ndjson and hands each line to take, until the end of the stream,
// take's error, or a failure that the service reports in it.
func lines(r io.Reader, take func(wireLine) error) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 64<<10), maxLine)
	for scanner.Scan() {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		var l wireLine
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			if lost := scanner.Err(); lost != nil {
				return lost // it is half a line
			}
			return fmt.Errorf("%w: %q", errStream, scanner.Text()[:min(60, len(scanner.Text()))])
		}
		if l.Stream == "error" {
			var f failure
			_ = json.Unmarshal(l.Data, &f.wireFailure) // a failure without words is one, too
			return f
		}
		if err := take(l); err != nil {
			return err
		}
	}
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		return errLong
	}
	return scanner.Err()
}

// alteredText is told once a client: a program may write the sign itself.
const alteredText = "the API tells output as text: bytes that are not UTF-8 arrive as \"\uFFFD\". Encode them inside (base64) to keep them"

// warnAltered says that output may have been altered on its way.
func (c *Client) warnAltered(text string) {
	if strings.ContainsRune(text, utf8.RuneError) {
		c.altered.Do(func() { c.notice(c.name + ": " + alteredText) })
	}
}

// text is what a line of output says; false for other lines.
func (l wireLine) text() (string, bool) {
	var text string
	if l.Stream != "stdout" && l.Stream != "stderr" {
		return "", false
	}
	err := json.Unmarshal(l.Data, &text)
	return text, err == nil
}
