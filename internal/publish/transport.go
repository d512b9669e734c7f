package publish

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"sbx/internal/fault"
)

// asText runs a command and hands on what it prints as text, with its exit code:
// what some providers give back of a command's output are characters, not bytes.
const asText = `if command -v base64 >/dev/null 2>&1; then echo base64; enc=base64; else echo hex; enc='od -An -v -tx1'; fi
exec 4>&1
code=$({ { "$@" 4>&-; echo $? >&3; } | $enc 3>&- >&4; } 3>&1)
exit "$code"`

// CollectText is CollectCommand with its output as text that NewDecoder reads.
func CollectText(base string) []string {
	return append([]string{"sh", "-c", asText, "sbx-text"}, CollectCommand(base)...)
}

// Decoder turns the text of CollectText back into bytes.
type Decoder struct {
	text *io.PipeWriter
	done chan error
}

// NewDecoder writes what it decodes to w. Close ends it and gives its error: what is
// no such text is fault.KindRefused.
func NewDecoder(w io.Writer) *Decoder {
	r, text := io.Pipe()
	d := &Decoder{text: text, done: make(chan error, 1)}
	go func() {
		err := decode(w, bufio.NewReader(r))
		_ = r.CloseWithError(err) // what still comes is refused at once
		d.done <- err
	}()
	return d
}

// Write takes text as it comes.
func (d *Decoder) Write(b []byte) (int, error) { return d.text.Write(b) }

// Close waits for the last of it.
func (d *Decoder) Close() error {
	_ = d.text.Close() // a pipe's own end never fails
	return <-d.done
}

// maxEncoding bounds in bytes the line that names the encoding.
const maxEncoding = 16

func decode(w io.Writer, r *bufio.Reader) error {
	head, err := readLine(r, maxEncoding)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var bytes io.Reader
	switch strings.TrimSpace(head) {
	case "base64":
		bytes = base64.NewDecoder(base64.StdEncoding, r) // it skips the ends of lines
	case "hex":
		bytes = hex.NewDecoder(plain{r})
	default:
		return fault.New(fault.KindRefused, "the sandbox gave something else than a bundle")
	}
	if _, err = io.Copy(w, bytes); err == nil {
		return nil
	}
	if corrupt := base64.CorruptInputError(0); errors.As(err, &corrupt) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.New(fault.KindRefused, "the bundle is damaged or was cut: %w", err)
	}
	return err
}

// readLine reads up to a newline, which it gives too: what is longer than limit bytes
// is fault.KindRefused, and no more of it is read. Before the newline the input may
// end, with io.EOF.
func readLine(r *bufio.Reader, limit int) (string, error) {
	var line []byte
	for len(line) < limit {
		c, err := r.ReadByte()
		if err != nil {
			return string(line), err
		}
		if line = append(line, c); c == '\n' {
			return string(line), nil
		}
	}
	return "", fault.New(fault.KindRefused, "the sandbox gave something else than a bundle: a line of more than %d bytes", limit)
}

// plain leaves out white space.
type plain struct{ r io.Reader }

func (p plain) Read(b []byte) (int, error) {
	for {
		n, err := p.r.Read(b)
		kept := 0
		for _, c := range b[:n] {
			if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
				b[kept] = c
				kept++
			}
		}
		if kept > 0 || err != nil {
			return kept, err
		}
	}
}
