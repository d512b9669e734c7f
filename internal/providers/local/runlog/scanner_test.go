package runlog

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forwards gives every line of the source, and what stands behind the last one.
func forwards(t *testing.T, source io.Reader) []string {
	t.Helper()
	s := newScanner(source)
	var got []string
	for {
		line, err := s.nextLine()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		got = append(got, string(line))
	}
	if rest := s.takeRest(); len(rest) > 0 {
		got = append(got, string(rest))
	}
	assert.Empty(t, s.takeRest())
	return got
}

// backwards gives the same from the other end, and checks the offsets.
func backwards(t *testing.T, content string) []string {
	t.Helper()
	b := newReverseScanner(strings.NewReader(content), int64(len(content)))
	var got []string
	for {
		offset, line, err := b.prevLine()
		if errors.Is(err, io.EOF) {
			slices.Reverse(got)
			return got
		}
		require.NoError(t, err)
		if line == nil {
			continue
		}
		got = append(got, string(line))
		require.True(t, strings.HasPrefix(content[offset:], string(line)))
		require.True(t, offset == 0 || content[offset-1] == '\n')
	}
}

func scanned() map[string]struct {
	content string
	want    []string
} {
	long := strings.Repeat("x", windowBytes-1)
	over := strings.Repeat("y", windowBytes)
	many := strings.Repeat("z", 5*windowBytes)
	type tc = struct {
		content string
		want    []string
	}
	return map[string]tc{
		"nothing":              {"", nil},
		"one":                  {"a\n", []string{"a"}},
		"torn":                 {"a\nb", []string{"a", "b"}},
		"only torn":            {"a", []string{"a"}},
		"empty lines":          {"\n\na\n\n", []string{"", "", "a", ""}},
		"the longest":          {"a\n" + long + "\nb\n", []string{"a", long, "b"}},
		"too long":             {"a\n" + over + "\nb\n", []string{"a", "b"}},
		"far too long":         {"a\n" + many + "\nb\n", []string{"a", "b"}},
		"too long at first":    {many + "\nb\n", []string{"b"}},
		"too long and torn":    {"a\n" + many, []string{"a"}},
		"several windows":      {strings.Repeat(strings.Repeat("w", 50_000)+"\n", 9), slices.Repeat([]string{strings.Repeat("w", 50_000)}, 9)},
		"torn and too long":    {over, nil},
		"first and too long":   {over + "\nb\n", []string{"b"}},
		"a window exactly":     {strings.Repeat("w", windowBytes-2) + "\nb\n", []string{strings.Repeat("w", windowBytes-2), "b"}},
		"line end at a window": {strings.Repeat("\n", windowBytes+3), slices.Repeat([]string{""}, windowBytes+3)},
	}
}

func TestScanner(t *testing.T) {
	t.Parallel()
	for name, tc := range scanned() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equalLines(t, tc.want, forwards(t, strings.NewReader(tc.content)))
			equalLines(t, tc.want, forwards(t, iotest.HalfReader(strings.NewReader(tc.content))))
		})
	}
}

func TestBackward(t *testing.T) {
	t.Parallel()
	for name, tc := range scanned() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equalLines(t, tc.want, backwards(t, tc.content))
		})
	}
}

// equalLines compares without printing windows full of text.
func equalLines(t *testing.T, want, got []string) {
	t.Helper()
	require.Equal(t, len(want), len(got), "lines") //nolint:testifylint // Len would print them all
	for i := range want {
		require.True(t, want[i] == got[i], "line %d", i) //nolint:testifylint // Equal would print both lines
	}
}

func TestScannerGoesOnAfterTheEnd(t *testing.T) {
	t.Parallel()
	var source bytes.Buffer
	s := newScanner(&source)
	for _, step := range []struct{ more, want string }{{"a\nb", "a"}, {"", ""}, {"c\n", "bc"}, {"\n", ""}} {
		source.WriteString(step.more)
		line, err := s.nextLine()
		if step.more == "" {
			require.ErrorIs(t, err, io.EOF)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, step.want, string(line))
	}
}

func TestScannerReportsABadDisk(t *testing.T) {
	t.Parallel()
	bad := errors.New("input/output error")
	_, err := newScanner(iotest.ErrReader(bad)).nextLine()
	require.ErrorIs(t, err, bad)
	_, err = newScanner(stuck{}).nextLine()
	require.ErrorIs(t, err, io.ErrNoProgress)
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestBackwardReportsAShrunkFile(t *testing.T) {
	t.Parallel()
	_, _, err := newReverseScanner(strings.NewReader("a\n"), 100).prevLine()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	bad := errors.New("input/output error")
	_, _, err = newReverseScanner(badAt{bad}, 100).prevLine()
	require.ErrorIs(t, err, bad)
}

type badAt struct{ err error }

func (b badAt) ReadAt([]byte, int64) (int, error) { return 0, b.err }

// Both directions find the same lines as a plain split.
func FuzzScanner(f *testing.F) {
	f.Add([]byte("a\nb"), uint32(0))
	f.Add([]byte("\n\n\x00"), uint32(windowBytes))
	f.Add([]byte("ab\ncd\n"), uint32(2*windowBytes))
	f.Fuzz(func(t *testing.T, piece []byte, size uint32) {
		content := string(piece)
		if len(piece) > 0 {
			content = strings.Repeat(content, int(size)%(3*windowBytes)/len(piece)+1)
		}
		var want []string
		for line := range strings.Lines(content) {
			if line = strings.TrimSuffix(line, "\n"); len(line) < windowBytes {
				want = append(want, line)
			}
		}
		equalLines(t, want, forwards(t, strings.NewReader(content)))
		equalLines(t, want, backwards(t, content))
	})
}
