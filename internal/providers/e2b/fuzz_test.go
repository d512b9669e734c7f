package e2b

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// frame is one frame of envd.
func frame(flags byte, payload string) []byte {
	head := binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(payload)))
	return append(head, payload...)
}

// FuzzReadFrame reads streams to their end: the frames written again are the stream, no byte behind
// a frame is read, and each kind of end has its error.
func FuzzReadFrame(f *testing.F) {
	good := append(frame(0, `{"event":{"start":{"pid":7}}}`), frame(flagEnd, `{}`)...)
	for _, seed := range [][]byte{
		good, good[:3], good[:9], frame(flagCompressed, "x"), frame(0, ""), frame(0x80, "y"), {0, 0xff, 0xff, 0xff, 0xff}, {0, 1, 0, 0, 1}, nil,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bytes.NewReader(stream)
		var again []byte
		for {
			flags, payload, err := readFrame(r)
			if err != nil {
				judge(t, stream[len(again):], err)
				return
			}
			again = append(again, frame(flags, string(payload))...)
			if !bytes.HasPrefix(stream, again) || len(stream)-r.Len() != len(again) || len(payload) > maxFrame || flags&flagCompressed != 0 {
				t.Fatalf("%q is read as %q", stream, again)
			}
		}
	})
}

// judge compares an error with the rest of the stream.
func judge(t *testing.T, rest []byte, err error) {
	t.Helper()
	want := io.ErrUnexpectedEOF
	switch {
	case len(rest) == 0:
		want = io.EOF
	case len(rest) < 5:
	case rest[0]&flagCompressed != 0, binary.BigEndian.Uint32(rest[1:]) > maxFrame:
		want = errFrame
	}
	if !errors.Is(err, want) {
		t.Fatalf("%q ends with %v, not with %v", rest, err, want)
	}
}

func TestEnvelopesAreFrames(t *testing.T) {
	t.Parallel()
	sent, err := encodeFrame(map[string]int{"pid": 7})
	require.NoError(t, err)
	flags, payload, err := readFrame(iotest.OneByteReader(bytes.NewReader(sent)))
	require.NoError(t, err)
	assert.Zero(t, flags)
	assert.JSONEq(t, `{"pid":7}`, string(payload))
}

// TestALostFrameTellsWhy: the error of a cut stream is the end of its caller, within a frame and
// between two.
func TestALostFrameTellsWhy(t *testing.T) {
	t.Parallel()
	left := errors.New("the caller has left")
	whole := frame(0, "abcd")
	for n := range whole {
		_, _, err := readFrame(io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(left)))
		require.ErrorIs(t, err, left, "after %d bytes", n)
	}
}
