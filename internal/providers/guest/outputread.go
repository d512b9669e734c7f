package guest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"sbx/internal/fault"
)

// Output is what ReadOutput brought.
type Output struct {
	Out, Err []byte
	Next     Offsets // where the next read begins
	// DroppedOut and DroppedErr are bytes that were not kept and come before Out
	// and Err.
	DroppedOut, DroppedErr int64
	// Cut says that bytes are missing somewhere because they could not be
	// written, as on a full disk. How many is not known.
	Cut  bool
	More bool // there was more than one read may bring
	// Ended says that the program has ended. Only processes that it has left
	// behind can still write.
	Ended bool
	Lost  bool // nobody is left who could see its end
}

// ReadSoFar reads what a run has written behind a place; ErrNoRun is inside the
// fault.KindNotFound of one that never was.
func ReadSoFar(ctx context.Context, sh Shell, tag string, at Offsets) (Output, error) {
	return Look(ctx, sh, ReadOutput(tag, at), func(printed []byte, code int) (Output, error) {
		if code == ExitMissing {
			return Output{}, fault.New(fault.KindNotFound, "%w", ErrNoRun)
		}
		return ParseOutput(printed, at)
	})
}

// ErrOutput is what every refused answer of a text wraps.
var ErrOutput = errors.New("what the sandbox printed is not understood")

// refuse is the fault of an answer that is not what the text prints.
func refuse(format string, args ...any) error {
	return fault.New(fault.KindUnavailable, "%w: "+format, append([]any{ErrOutput}, args...)...).
		WithHint("something in the sandbox may print into every shell, or it was put back to an earlier state")
}

// ParseOutput reads what ReadOutput printed; at is what it was given.
// fault.KindUnavailable around ErrOutput for anything else, and where there is
// less now than was read before.
func ParseOutput(text []byte, at Offsets) (Output, error) {
	lines := bytes.Split(text, []byte("\n"))
	state, found := bytes.CutPrefix(lines[0], []byte("state "))
	if !found {
		return Output{}, refuse("no state")
	}
	o := Output{Lost: string(state) == stateLost, Ended: string(state) == stateEnded || string(state) == stateLost}
	out, lines, err := parseChunk(lines[1:], "out", max(0, at.Out))
	if err != nil {
		return Output{}, err
	}
	errs, _, err := parseChunk(lines, "err", max(0, at.Err))
	if err != nil {
		return Output{}, err
	}
	o.Out, o.DroppedOut, o.Next.Out = out.data, out.dropped, out.next()
	o.Err, o.DroppedErr, o.Next.Err = errs.data, errs.dropped, errs.next()
	o.More, o.Cut = out.more() || errs.more(), out.cut || errs.cut
	return o, nil
}

// chunk is one stream's part of an answer.
type chunk struct {
	from, total, dropped int64
	cut                  bool
	data                 []byte
}

func (c chunk) next() int64 { return c.from + int64(len(c.data)) }

// more is false where nothing came: the file was dropped while it was opened, and
// the next look finds what came after.
func (c chunk) more() bool { return len(c.data) > 0 && c.next() < c.total }

// parseChunk reads one stream: a head "NAME FROM TOTAL [cut]" and, unless there
// is nothing, the encoding, the encoded bytes and a dot. It gives the lines that
// follow.
func parseChunk(lines [][]byte, name string, at int64) (chunk, [][]byte, error) {
	if len(lines) == 0 {
		return chunk{}, nil, refuse("%s is missing", name)
	}
	c, err := parseHead(strings.Fields(string(lines[0])), name, at)
	if err != nil {
		return c, nil, err
	}
	lines = lines[1:]
	if len(lines) == 0 || (string(lines[0]) != "base64" && string(lines[0]) != "hex") {
		return c, lines, nil
	}
	end := 1
	for end < len(lines) && string(lines[end]) != "." {
		end++
	}
	if end == len(lines) {
		return c, nil, refuse("%s is cut short", name)
	}
	if c.data, err = decode(string(lines[0]), bytes.Join(lines[1:end], nil)); err != nil {
		return c, nil, refuse("%s: %v", name, err)
	}
	return c, lines[end+1:], nil
}

func parseHead(head []string, name string, at int64) (chunk, error) {
	if len(head) < 3 || head[0] != name {
		return chunk{}, refuse("%s has no head", name)
	}
	from, errFrom := strconv.ParseInt(head[1], 10, 64)
	total, errTotal := strconv.ParseInt(head[2], 10, 64)
	switch {
	case errFrom != nil || errTotal != nil || from < at || from > maxOffset:
		return chunk{}, refuse("%s has no offsets", name)
	case total < at:
		return chunk{}, refuse("%s has %d bytes, %d were read before", name, total, at)
	}
	return chunk{from: from, total: total, dropped: from - at, cut: len(head) > 3 && head[3] == "cut"}, nil
}

// maxOffset keeps sums of offsets far from overflow.
const maxOffset = 1 << 60

func decode(encoding string, text []byte) ([]byte, error) {
	plain := strings.Join(strings.Fields(string(text)), "")
	if encoding == "hex" {
		return hex.DecodeString(plain)
	}
	return base64.StdEncoding.DecodeString(plain)
}
