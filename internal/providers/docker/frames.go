package docker

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
)

const (
	frameHeader = 8        // stream, three zeros, four bytes of length
	maxFrame    = 16 << 20 // bytes; the engine sends 16 to 32 KiB
	maxMessage  = 1 << 20  // bytes of one message in JSON
)

// The streams of frames.
const (
	streamStdin  = 0 // output, too, where the engine has none of its own for it
	streamStderr = 2
	streamEngine = 3 // an error of the engine itself
)

var errFrame = errors.New("what comes is no stream of the engine")

// eachFrame gives the frames of a multiplexed stream to take until it ends or take fails. The size in a header
// is not trusted.
func eachFrame(from io.Reader, take func(stream byte, text []byte) error) error {
	head := make([]byte, frameHeader)
	var text []byte
	for {
		if _, err := io.ReadFull(from, head); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		size := int(binary.BigEndian.Uint32(head[4:]))
		if head[0] > streamEngine || head[1]|head[2]|head[3] != 0 || size > maxFrame {
			return fault.New(fault.KindUnavailable, "%w", errFrame)
		}
		text = append(text[:0], make([]byte, size)...)
		if _, err := io.ReadFull(from, text); err != nil {
			return cmp.Or(unexpected(err), err)
		}
		if head[0] == streamEngine {
			return fault.New(fault.KindUnavailable, "the engine says: %s", text)
		}
		if err := take(head[0], text); err != nil {
			return err
		}
	}
}

// unexpected is the error of an end in the middle of a frame; nil for another error.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return fault.New(fault.KindUnavailable, "%w", io.ErrUnexpectedEOF)
	}
	return nil
}

// message is one line of a stream of JSON: of a pull or of the events.
type message struct {
	wireEvent
	Error string `json:"error"`
}

// jsonLines reads a stream of JSON values to its end.
func jsonLines(body io.Reader) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		limited := &io.LimitedReader{R: body}
		for dec := json.NewDecoder(limited); ; {
			limited.N = maxMessage
			var m message
			err := dec.Decode(&m)
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil && fault.KindOf(err) == fault.KindUnknown:
				err = fault.New(fault.KindUnavailable, "the answer is invalid: %w", err)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// newPauses are the pauses between two reads of a state that changes soon.
func newPauses() *poll.Backoff { return poll.NewBackoff(50*time.Millisecond, time.Second) }
