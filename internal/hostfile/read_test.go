package hostfile

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", 2048)), 0o600))
	content, err := Read(t.Context(), path, 2048)
	require.NoError(t, err)
	assert.Len(t, content, 2048)
	_, err = Read(t.Context(), path, 2047)
	var large *TooLargeError
	require.ErrorAs(t, err, &large)
	require.EqualError(t, err, path+": larger than 2047 bytes, the limit")
	_, err = File{Flag: "--env-file", Path: path, Limit: 1024, Hint: "name another"}.Read(t.Context())
	require.EqualError(t, err, "--env-file: "+path+": larger than 1 KiB, the limit")
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	assert.Equal(t, "name another", fault.HintOf(err))
	_, err = Read(t.Context(), filepath.Dir(path), 10)
	require.ErrorContains(t, err, filepath.Dir(path))
}

func TestLinesEndWithTheirStreamTheirReaderAndTheContext(t *testing.T) {
	t.Parallel()
	var got []string
	add := func(line string) error { got = append(got, line); return nil }
	require.NoError(t, Lines(t.Context(), strings.NewReader("a\nb\n\nc"), add))
	assert.Equal(t, []string{"a", "b", "", "c"}, got)

	enough := errors.New("enough")
	require.ErrorIs(t, Lines(t.Context(), strings.NewReader("a\nb\n"), func(string) error { return enough }), enough)
	require.ErrorIs(t, Lines(t.Context(), io.MultiReader(strings.NewReader("a\n"), broken{enough}), add), enough)

	// a pipe that stays open and gives nothing more
	reader, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { _, _ = io.WriteString(writer, "only\n") }()
	err := Lines(ctx, reader, func(string) error { cancel(enough); return nil })
	require.ErrorIs(t, err, enough)
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
