package publish

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestBytesTravelAsText(t *testing.T) {
	t.Parallel()
	raw := make([]byte, 300_000)
	_, err := rand.Read(raw)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "raw")
	require.NoError(t, os.WriteFile(file, raw, 0o600))
	without := t.TempDir() // a PATH with all that is needed but base64
	for _, tool := range []string{"sh", "cat", "od"} {
		path, err := exec.LookPath(tool)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(without, tool)))
	}
	for _, path := range []string{os.Getenv("PATH"), without} {
		for code, words := range map[int][]string{0: {"cat", file}, 7: {"sh", "-c", "cat " + file + "; exit 7"}, 127: {"no-such-program"}} {
			var got bytes.Buffer
			d := NewDecoder(&got)
			cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", asText, "sbx-text"}, words...)...)
			cmd.Env, cmd.Stdout = []string{"PATH=" + path}, d
			_ = cmd.Run() // its exit code is checked
			require.NoError(t, d.Close())
			assert.Equal(t, code, cmd.ProcessState.ExitCode())
			if code == 127 {
				assert.Empty(t, got.Bytes())
				continue
			}
			assert.True(t, bytes.Equal(raw, got.Bytes()), "%d bytes came of %d", got.Len(), len(raw))
		}
	}
}

func TestWhatIsNoSuchTextIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "PACK\x00", "base64\n%%%%", "base64\nQUJ", "utf8\nabc"} {
		d := NewDecoder(&bytes.Buffer{})
		_, _ = d.Write([]byte(text)) // it may be refused in the middle
		assert.Equal(t, fault.KindRefused, fault.KindOf(d.Close()), "%q", text)
	}
	d := NewDecoder(refusing{})
	_, _ = d.Write([]byte("base64\nQUJDREVG\n"))
	require.ErrorIs(t, d.Close(), context.Canceled, "what the file says comes through")
}

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, context.Canceled }

// xs yields the letter x, up to most times.
type xs struct{ read, most int }

func (x *xs) Read(b []byte) (int, error) {
	if x.read >= x.most {
		return 0, io.EOF
	}
	for i := range b {
		b[i] = 'x'
	}
	x.read += len(b)
	return len(b), nil
}

// A line without an end takes no memory of this host.
func TestALineHasItsLimit(t *testing.T) {
	t.Parallel()
	const buffered = 64 << 10
	text := &xs{most: 8 << 20}
	err := decodeText(io.Discard, bufio.NewReader(text))
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
	assert.LessOrEqual(t, text.read, buffered)
	header := &xs{most: 8 << 20}
	_, err = readHeader(bufio.NewReader(header))
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
	assert.LessOrEqual(t, header.read, maxHeader+buffered)
	for text, want := range map[string]string{"": "", "a": "a", "abc\nd": "abc\n", "abcd": ""} {
		line, err := readLine(bufio.NewReader(strings.NewReader(text)), 4)
		assert.Equal(t, want, line)
		assert.Equal(t, strings.Contains(text, "\n"), err == nil, "%q: %v", text, err)
	}
}
