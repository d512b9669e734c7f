package docker

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"sync/atomic"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
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

// silence is how long a stream of an engine may bring nothing before the engine is asked whether there is more
// to come: such a stream has no signs of life of its own.
const silence = 10 * time.Second

// outage is how long the engine may not answer that question.
const outage = 15 * time.Second

// pulse says when a stream last brought something.
type pulse struct{ at atomic.Int64 }

func (p *pulse) beat()              { p.at.Store(time.Now().UnixNano()) }
func (p *pulse) age() time.Duration { return time.Since(time.Unix(0, p.at.Load())) }

// watch asks about a stream that is silent, until ctx ends. It gives the stream up where the engine does not
// answer, or where goesOn says that nothing more comes; then the error is errOver.
func (p *pulse) watch(ctx context.Context, goesOn func(context.Context) (bool, error), give func(error)) {
	for answered := time.Now(); providers.Pause(ctx, silence) == nil; {
		if p.age() < silence {
			answered = time.Now()
			continue
		}
		more, err := goesOn(ctx)
		switch {
		case err == nil && !more && p.age() >= silence:
			give(errOver)
			return
		case err == nil:
			answered = time.Now()
		case fault.KindOf(err) != fault.KindUnavailable, time.Since(answered) >= outage:
			give(err)
			return
		}
	}
}

var errOver = fault.New(fault.KindUnavailable, "what it belongs to has ended, and the stream has not")

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
