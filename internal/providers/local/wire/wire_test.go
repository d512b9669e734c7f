package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/local/wire"
)

func TestMessagesFollowOneAnother(t *testing.T) {
	t.Parallel()
	var pipe bytes.Buffer
	require.NoError(t, wire.Write(&pipe, wire.StubReport{Started: &wire.Started{PID: 7}}))
	require.NoError(t, wire.Write(&pipe, wire.StubReport{Exited: &wire.Exited{Code: 3}}))
	r := wire.NewReader(&pipe)
	var first, second, third wire.StubReport
	require.NoError(t, r.Next(&first))
	require.NoError(t, r.Next(&second))
	assert.Equal(t, 7, first.Started.PID)
	assert.Equal(t, 3, second.Exited.Code)
	require.ErrorIs(t, r.Next(&third), io.EOF)
}

func TestTornMessagesAreErrors(t *testing.T) {
	t.Parallel()
	var m wire.Ready
	require.ErrorIs(t, wire.NewReader(strings.NewReader(`{"record":`)).Next(&m), io.ErrUnexpectedEOF)
	require.Error(t, wire.NewReader(strings.NewReader("{]\n")).Next(&m))
	require.NoError(t, wire.NewReader(strings.NewReader(`{"new_field":1}`+"\n")).Next(&m), "a newer side may say more")
}

func TestAsFailKeepsTheKind(t *testing.T) {
	t.Parallel()
	known := &wire.Fail{Kind: wire.FailNotFound, Message: "gone"}
	assert.Equal(t, known, wire.AsFail(fmt.Errorf("while starting: %w", known)))
	assert.Equal(t, &wire.Fail{Kind: wire.FailLauncher, Message: "boom"}, wire.AsFail(errors.New("boom")))
}

func FuzzNext(f *testing.F) {
	f.Add([]byte(`{"started":{"pid":1}}` + "\n"))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		r := wire.NewReader(bytes.NewReader(raw))
		for range 100 {
			var m wire.StubReport
			if err := r.Next(&m); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return
			}
		}
	})
}

func TestAsFailKnowsAFullDisk(t *testing.T) {
	t.Parallel()
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		err := fmt.Errorf("writing the record: %w", &fs.PathError{Op: "write", Path: "record.json", Err: errno})
		assert.Equal(t, wire.FailDisk, wire.AsFail(err).Kind, "%v", errno)
	}
	assert.Equal(t, wire.FailLauncher, wire.AsFail(syscall.EIO).Kind)
}
