package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/process"
)

// tap fails after a number of bytes, as a closed pipe or a full disk does.
type tap struct {
	left   int
	reason error
	writes int
}

func (w *tap) Write(b []byte) (int, error) {
	w.writes++
	if len(b) > w.left {
		return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: w.reason}
	}
	w.left -= len(b)
	return len(b), nil
}

func TestReaderOfStdoutGoesAway(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"table", "csv", "json", "ndjson", "yaml", "name", "jq=.items[].ref", "template=xx"} {
		for _, reason := range []error{syscall.EPIPE, io.ErrClosedPipe} {
			s := newStage(place{})
			s.Stdout.Writer = &tap{reason: reason}
			l, err := NewList(s.printer(t, format), boxSpec())
			require.NoError(t, err)
			for _, b := range boxes() {
				if err := l.Add(b); err != nil {
					require.ErrorIs(t, err, ErrClosed, format)
				}
			}
			l.Fail(ErrClosed) // what a caller may do with the error of Add
			require.ErrorIs(t, l.Close(), ErrClosed, format)
			assert.Empty(t, s.err.String(), "%s ends quietly", format)
		}
	}
}

func TestGoneReaderDoesNotHideAFailure(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"table", "json"} {
		s := newStage(place{})
		s.Stdout.Writer = &tap{reason: syscall.EPIPE}
		l, err := NewList(s.printer(t, format), boxSpec())
		require.NoError(t, err)
		_ = l.AddFailed(boxes()[0], fault.New(fault.KindUnavailable, "still running").At("prod", "terminate i-77"))
		assert.Equal(t, 7, fault.ExitCode(l.Close()), format)
		assert.Equal(t, "sbx: error: prod: terminate i-77: still running\n", s.err.String(), format)
	}
}

func TestFullDiskIsAnError(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"table", "csv", "json", "ndjson", "yaml", "name", "jq=.items[].ref", "template=xx"} {
		s := newStage(place{})
		s.Stdout.Writer = &tap{reason: syscall.ENOSPC}
		code, _ := playOn(t, s.printer(t, format))
		assert.Equal(t, 1, code, format)
		assert.Equal(t, 1, strings.Count(s.err.String(), "no space left on device"), format)
		assert.Contains(t, s.err.String(), "hint: the output is incomplete", format)
	}
}

func playOn(t *testing.T, p *Printer) (int, error) {
	t.Helper()
	l, err := NewList(p, boxSpec())
	require.NoError(t, err)
	for _, b := range boxes() {
		_ = l.Add(b) // Close reports what Add failed with
	}
	err = l.Close()
	return fault.ExitCode(err), err
}

func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	t.Parallel()
	w := &tap{left: 4, reason: syscall.EPIPE}
	screen := &terminal{out: w, err: io.Discard}
	_, err := screen.Write([]byte("abcd"))
	require.NoError(t, err)
	for range 3 {
		n, err := screen.Write([]byte("e"))
		assert.Zero(t, n)
		require.ErrorIs(t, err, ErrClosed)
	}
	assert.Equal(t, 2, w.writes)
}

func TestOutputError(t *testing.T) {
	t.Parallel()
	require.NoError(t, WriteError(nil))
	require.ErrorIs(t, WriteError(fmt.Errorf("write |1: %w", syscall.EPIPE)), ErrClosed)
	err := WriteError(errors.New("i/o error"))
	assert.Equal(t, fault.KindUnknown, fault.KindOf(err))
	require.EqualError(t, err, "write to standard output: i/o error")
}

func TestAFrameReplacesTheOneBefore(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"table": "\x1b[H\x1b[2J", "wide": "\x1b[H\x1b[2J", "csv": ""} {
		s := newStage(place{width: 80})
		p := s.printer(t, format)
		p.BeginFrame()
		require.NoError(t, p.Line("row"))
		p.Note("note")
		assert.Empty(t, s.out.String()+s.err.String(), "it is shown as a whole")
		require.NoError(t, p.ShowFrame())
		assert.Equal(t, want+"row\n", s.out.String(), format)
		assert.Equal(t, "sbx: note\n", s.err.String())
	}
	for _, env := range []string{"TERM=dumb", "SBX_ACCESSIBLE=1"} {
		s := newStage(place{width: 80, env: []string{env}})
		p := s.printer(t, "table")
		p.BeginFrame()
		require.NoError(t, p.ShowFrame())
		assert.Empty(t, s.out.String(), env)
	}
	s := newStage(place{})
	p := s.printer(t, "table")
	p.BeginFrame()
	require.NoError(t, p.Line("row"))
	require.NoError(t, p.ShowFrame())
	assert.Equal(t, "row\n", s.out.String(), "a pipe has no screen")
	p.BeginFrame()
	require.NoError(t, p.Line("row"))
	p.DropFrame()
	p.Note("after")
	assert.Equal(t, "row\n", s.out.String())
	assert.Equal(t, "sbx: after\n", s.err.String())
}

// TestAFrameWithoutAReaderEnds, as every output does.
func TestAFrameWithoutAReaderEnds(t *testing.T) {
	t.Parallel()
	p := New(process.Process{Stdout: process.Stream{Writer: closedWriter{}}, Stderr: process.Stream{Writer: io.Discard}}, Options{})
	p.BeginFrame()
	require.NoError(t, p.Line("row"))
	require.ErrorIs(t, p.ShowFrame(), ErrClosed)
}

type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestRawBytesPassThrough(t *testing.T) {
	t.Parallel()
	s := newStage(place{width: 80})
	p := s.printer(t, "table")
	_, err := p.Stdout().Write([]byte("\x1b[31mraw\x00"))
	require.NoError(t, err)
	require.NoError(t, p.Line("\x1b[31m\tline"))
	assert.Equal(t, "\x1b[31mraw\x00"+`\x1b[31m`+"\tline\n", s.out.String())
}

func TestStreamsFromManyGoroutines(t *testing.T) {
	t.Parallel()
	s := newStage(place{width: 80})
	p := s.printer(t, "table")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				p.Note("a note")
				p.Warn("a warning")
				assert.NoError(t, p.Line("a line"))
			}
		})
	}
	all.Wait()
	assert.Equal(t, strings.Repeat("a line\n", 400), s.out.String())
	assert.Equal(t, 400, strings.Count(s.err.String(), "sbx: a note\n"))
	assert.Equal(t, 400, strings.Count(s.err.String(), "sbx: warning: a warning\n"))
}
