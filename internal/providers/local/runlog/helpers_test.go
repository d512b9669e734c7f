package runlog

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

const largeCap = 1 << 30

func start() time.Time { return time.Date(2026, 11, 20, 1, 2, 3, 0, time.UTC) }

// lines reads a log to its end and fails on any error. What is missing is left out.
func lines(t *testing.T, dir string, q Query) []sandbox.LogLine {
	t.Helper()
	got, _ := linesAndGaps(t, dir, q)
	return got
}

// linesAndGaps is lines, with the number of lines that are missing at each gap.
func linesAndGaps(t *testing.T, dir string, q Query) (got []sandbox.LogLine, gaps []int) {
	t.Helper()
	for l, err := range Read(t.Context(), dir, q) {
		require.NoError(t, err)
		if l.Gap != nil {
			gaps = append(gaps, int(*l.Gap.Lines))
			continue
		}
		got = append(got, l)
	}
	return got, gaps
}

func texts(lines []sandbox.LogLine) []string {
	got := make([]string, 0, len(lines))
	for _, l := range lines {
		got = append(got, l.Text)
	}
	return got
}

// say writes to a stream the way the supervisor does, without looking.
func say(w io.Writer, format string, args ...any) { fmt.Fprintf(w, format, args...) }

// put writes a file of a log as another program might have left it.
func put(t *testing.T, path string, content ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(content, "")), 0o600))
}

// rec is a record of the given second.
func rec(second int, stream Stream, tag byte, text string) string {
	stamp := appendStamp(nil, start().Add(time.Duration(second)*time.Second))
	return string(appendRecord(nil, stamp, stream, tag, []byte(text)))
}

// text gives random bytes without a line end.
func text(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		if b[i] = byte(r.Uint32()); b[i] == '\n' {
			b[i] = ' '
		}
	}
	return string(b)
}

// mixed writes a log in which lines of all lengths of both streams interleave,
// in random pieces, and returns the lines of each stream.
func mixed(r *rand.Rand, w *Writer, n int) map[string][]string {
	want := map[string][]string{}
	var pending [streams]string
	for range n {
		length := r.IntN(40)
		if r.IntN(10) == 0 {
			length = r.IntN(3 * ChunkBytes)
		}
		s := streamAt(r.IntN(streams))
		line := text(r, length)
		want[string(s)] = append(want[string(s)], line)
		pending[s.index()] += line + "\n"
		for i := range pending {
			cut := r.IntN(len(pending[i]) + 1)
			say(w.Stream(streamAt(i)), "%s", pending[i][:cut])
			pending[i] = pending[i][cut:]
		}
		if r.IntN(20) == 0 {
			w.Flush()
		}
	}
	for i := range pending {
		say(w.Stream(streamAt(i)), "%s", strings.TrimSuffix(pending[i], "\n"))
	}
	return want
}

// follower reads a log in the background and hands its lines over one by one.
type follower struct {
	lines <-chan sandbox.LogLine
	end   <-chan error
	done  chan struct{} // closing it says that the sandbox has ended
}

func follow(ctx context.Context, dir string, tail int, notify func(string) *notifier) follower {
	got, end, done := make(chan sandbox.LogLine), make(chan error, 1), make(chan struct{})
	go func() {
		for l, err := range readWith(ctx, dir, Query{Follow: true, Tail: tail, Done: done}, notify) {
			if err != nil {
				end <- err
				return
			}
			select {
			case got <- l:
			case <-ctx.Done():
			}
		}
		end <- nil
	}()
	return follower{got, end, done}
}

// expect takes the next lines; it fails when the read ends or nothing comes.
func (f follower) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, text := range want {
		select {
		case l := <-f.lines:
			require.Equal(t, text, l.Text)
		case err := <-f.end:
			require.Fail(t, "the read ended", "before %q: %v", text, err)
		case <-time.After(2 * time.Minute):
			require.Fail(t, "nothing came", "instead of %q", text)
		}
	}
}

// ends gives the error that the read ends with, after no more lines.
func (f follower) ends(t *testing.T) error {
	t.Helper()
	select {
	case l := <-f.lines:
		require.Fail(t, "a line too many", "%q", l.Text)
	case err := <-f.end:
		return err
	case <-time.After(2 * time.Minute):
		require.Fail(t, "the read does not end")
	}
	return nil
}
