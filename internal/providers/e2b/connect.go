package e2b

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Frames of a Connect stream: one byte of flags, four of length, the payload.
const (
	flagCompressed = 0x01
	flagEnd        = 0x02
	maxFrame       = 16 << 20 // bytes; envd sends chunks of 32 KiB
)

// errFrame is inside the error of every invalid frame.
var errFrame = errors.New("the stream is not understood")

func encodeFrame(message any) ([]byte, error) {
	text, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	frame := make([]byte, 5, 5+len(text))
	binary.BigEndian.PutUint32(frame[1:], uint32(len(text)))
	return append(frame, text...), nil
}

// readFrame reads one frame; io.EOF where the stream ends between two frames.
func readFrame(r io.Reader) (flags byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	switch {
	case size > maxFrame:
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes", errFrame, size)
	case head[0]&flagCompressed != 0:
		return 0, nil, fmt.Errorf("%w: a compressed frame, which was not asked for", errFrame)
	}
	payload = make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		if err == io.EOF { // ReadFull returns it unwrapped
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return head[0], payload, nil
}
