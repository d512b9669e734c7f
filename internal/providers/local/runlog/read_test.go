package runlog

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func TestRead(t *testing.T) {
	t.Parallel()
	at := func(second int, text string) sandbox.LogLine {
		return sandbox.LogLine{At: start().Add(time.Duration(second) * time.Second), Stream: "stdout", Text: text}
	}
	cut := func(l sandbox.LogLine) sandbox.LogLine { l.Truncated = true; return l }
	one, two := rec(1, Stdout, tagFull, "one"), rec(2, Stdout, tagFull, "two")
	for name, tc := range map[string]struct {
		older, current string
		query          Query
		want           []sandbox.LogLine
	}{
		"nothing":                 {},
		"current only":            {current: one + two, want: []sandbox.LogLine{at(1, "one"), at(2, "two")}},
		"older only":              {older: one, want: []sandbox.LogLine{at(1, "one")}},
		"older first":             {older: one, current: two, want: []sandbox.LogLine{at(1, "one"), at(2, "two")}},
		"since":                   {current: one + two, query: Query{Since: start().Add(2 * time.Second)}, want: []sandbox.LogLine{at(2, "two")}},
		"since beats tail":        {current: one + two, query: Query{Since: start().Add(2 * time.Second), Tail: 2}, want: []sandbox.LogLine{at(2, "two")}},
		"garbage between":         {current: one + "\x00\x00\n\nkernel: oops\n" + two, want: []sandbox.LogLine{at(1, "one"), at(2, "two")}},
		"torn at the end":         {current: one + rec(2, Stdout, tagFull, "tw")[:len(two)-2], want: []sandbox.LogLine{at(1, "one"), cut(at(2, "tw"))}},
		"torn head at the end":    {current: one + two[:12], want: []sandbox.LogLine{at(1, "one")}},
		"torn in the older":       {older: one[:len(one)-1], current: two, want: []sandbox.LogLine{cut(at(1, "one")), at(2, "two")}},
		"joined":                  {current: rec(1, Stdout, tagPart, "o") + rec(2, Stdout, tagPart, "n") + rec(3, Stdout, tagFull, "e"), want: []sandbox.LogLine{at(1, "one")}},
		"joined over a rotation":  {older: rec(1, Stdout, tagPart, "o"), current: rec(2, Stdout, tagFull, "ne"), want: []sandbox.LogLine{at(1, "one")}},
		"joined around another":   {current: rec(1, Stdout, tagPart, "o") + rec(2, Stderr, tagFull, "") + rec(3, Stdout, tagFull, "ne"), query: Query{Tail: 1}, want: []sandbox.LogLine{at(1, "one")}},
		"open at the end":         {current: one + rec(2, Stdout, tagPart, "two"), want: []sandbox.LogLine{at(1, "one"), at(2, "two")}},
		"tail of an open line":    {current: one + rec(2, Stdout, tagPart, "two"), query: Query{Tail: 1}, want: []sandbox.LogLine{at(2, "two")}},
		"tail takes in the older": {older: one, current: two, query: Query{Tail: 2}, want: []sandbox.LogLine{at(1, "one"), at(2, "two")}},
		"tail of the current":     {older: one, current: two, query: Query{Tail: 1}, want: []sandbox.LogLine{at(2, "two")}},
		"tail of more":            {older: one, current: two, query: Query{Tail: 9}, want: []sandbox.LogLine{at(1, "one"), at(2, "two")}},
		"tail below zero":         {current: one, query: Query{Tail: -1}, want: []sandbox.LogLine{at(1, "one")}},
		"empty current":           {older: one, query: Query{Tail: 1}, want: []sandbox.LogLine{at(1, "one")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if tc.older != "" {
				put(t, olderPath(dir), tc.older)
			}
			if tc.current != "" || name == "empty current" {
				put(t, currentPath(dir), tc.current)
			}
			assert.Equal(t, tc.want, lines(t, dir, tc.query))
		})
	}
}

func TestLongLinesAreTruncated(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		length int
		cut    bool
	}{
		"the longest": {MaxLineBytes, false},
		"one more":    {MaxLineBytes + 1, true},
		"10 MB":       {10_000_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w := NewWriter(dir, largeCap)
			say(w.Stream(Stdout), "%s\nnext\n", strings.Repeat("x", tc.length))
			require.NoError(t, w.Close())
			got := lines(t, dir, Query{})
			require.Len(t, got, 2)
			assert.Len(t, got[0].Text, min(tc.length, MaxLineBytes))
			assert.Equal(t, tc.cut, got[0].Truncated)
			assert.Equal(t, "next", got[1].Text)
			assert.False(t, got[1].Truncated)
		})
	}
}

// The last n lines are those of a full read, whatever the log looks like.
func TestTailIsTheEndOfAll(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 3))
			dir := t.TempDir()
			w := NewWriter(dir, int64(MinCapBytes*(1+r.IntN(20))))
			mixed(r, w, 1+r.IntN(100))
			if r.IntN(2) == 0 {
				require.NoError(t, w.Close())
			}
			all := lines(t, dir, Query{})
			for range 10 {
				n := 1 + r.IntN(len(all)+2)
				got := lines(t, dir, Query{Tail: n})
				want := all[max(0, len(all)-n):]
				require.Len(t, got, len(want), "seed %d, tail %d", seed, n)
				for i := range want {
					require.True(t, want[i] == got[i], "seed %d, tail %d of %d, line %d", seed, n, len(all), i) //nolint:testifylint // Equal would print windows of text
				}
			}
		})
	}
}

// counting counts the bytes that are read of a log.
type counting struct {
	io.ReaderAt
	bytes int
}

func (c *counting) ReadAt(p []byte, at int64) (int, error) {
	c.bytes += len(p)
	return c.ReaderAt.ReadAt(p, at)
}

func TestTailDoesNotLoadTheFile(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]string{"both streams": rec(0, Stderr, tagFull, ""), "one stream": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := strings.Repeat(rec(0, Stdout, tagFull, strings.Repeat("x", 100)), 50_000)
			content += other
			last := strings.Repeat(rec(0, Stdout, tagFull, "y"), 10)
			content += last
			size := int64(len(content))
			log := &counting{ReaderAt: strings.NewReader(content)}
			tail := &tailer{want: 10}
			done, err := tail.walkFile(log, size, true)
			require.NoError(t, err)
			assert.True(t, done)
			assert.Equal(t, readStart{inCurrent: true, offset: size - int64(len(last))}, tail.startPlace())
			limit := 2 * windowBytes
			if other == "" {
				limit += 2 * lookBack
			}
			assert.Less(t, log.bytes, limit)
		})
	}
}

// A line whose parts lie further apart than a tail looks back loses its head
// and nothing else.
func TestTailLooksBackSoFar(t *testing.T) {
	t.Parallel()
	noise := strings.Repeat(rec(2, Stderr, tagFull, strings.Repeat("x", 1000)), 3*lookBack/2000)
	for name, tc := range map[string]struct {
		between, want string
	}{
		"near": {noise[:len(noise)/3], "head tail"},
		"far":  {noise, "tail"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			between := tc.between[:strings.LastIndexByte(tc.between, '\n')+1]
			dir := t.TempDir()
			put(t, currentPath(dir), rec(0, Stdout, tagFull, "before"), rec(1, Stdout, tagPart, "head "), between, rec(3, Stdout, tagFull, "tail"))
			assert.Equal(t, []string{tc.want}, texts(lines(t, dir, Query{Tail: 1})))
		})
	}
}

// A rotation between the opening of the two files would give one of them twice,
// or none of what lies between them.
func TestOpenPairNoticesARotation(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rotations      int // before which openings it happens
		older, current string
	}{
		"none":       {0, "a", "b"},
		"one":        {1, "b", "new"},
		"two":        {2, "new", "new"},
		"never ends": {2 * openAttempts, "new", "new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, olderPath(dir), "a")
			put(t, currentPath(dir), "b")
			rotations := 0
			files, err := openPairBy(func(path string) (*os.File, error) {
				if path == olderPath(dir) && rotations < tc.rotations {
					rotations++
					require.NoError(t, os.Rename(currentPath(dir), olderPath(dir)))
					put(t, currentPath(dir), "new")
				}
				return openIfThere(path)
			}, dir)
			require.NoError(t, err)
			t.Cleanup(files.closeFiles)
			for file, want := range map[*os.File]string{files.older: tc.older, files.current: tc.current} {
				got, err := io.ReadAll(file)
				require.NoError(t, err)
				assert.Equal(t, want, string(got))
			}
			assert.LessOrEqual(t, rotations, openAttempts)
		})
	}
}

// While the writer rotates, what a read gives is one run without a gap.
func TestReadDuringRotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := NewWriter(dir, MinCapBytes)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				say(w.Stream(Stdout), "%d %s\n", i, strings.Repeat("x", 900))
			}
		}
	}()
	for read := range 300 {
		tail := []int{0, 0, 30}[read%3]
		got, first := lines(t, dir, Query{Tail: tail}), 0
		for i, l := range got {
			var n int
			_, err := fmt.Sscanf(l.Text, "%d ", &n)
			require.NoError(t, err)
			if i == 0 {
				first = n
			}
			require.Equal(t, first+i, n, "read %d, line %d of %d", read, i, len(got))
		}
		if tail > 0 && first > 0 {
			require.Len(t, got, tail)
		}
	}
	close(stop)
	<-stopped
	require.NoError(t, w.Close())
}

func TestReadEndsWithTheLoopAndWithTheContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, currentPath(dir), rec(1, Stdout, tagFull, "one"), rec(2, Stdout, tagFull, "two"), rec(3, Stdout, tagFull, "three"))
	seen := 0
	for _, err := range Read(t.Context(), dir, Query{}) {
		require.NoError(t, err)
		seen++
		break
	}
	assert.Equal(t, 1, seen)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	var last error
	for l, err := range Read(ctx, dir, Query{}) {
		if last = err; err == nil {
			got = append(got, l.Text)
			cancel()
		}
	}
	assert.Equal(t, []string{"one"}, got)
	require.ErrorIs(t, last, context.Canceled)
}

func TestReadReportsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for _, path := range []func(string) string{currentPath, olderPath} {
		for _, tail := range []int{0, 5} {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				require.NoError(t, os.Mkdir(path(dir), 0o700))
				var errs []error
				for _, err := range Read(t.Context(), dir, Query{Tail: tail}) {
					errs = append(errs, err)
				}
				require.Len(t, errs, 1)
				require.ErrorContains(t, errs[0], filepath.Base(path(dir)))
			})
		}
	}
}

func TestReadOfNoDirectoryIsNoLines(t *testing.T) {
	t.Parallel()
	assert.Empty(t, lines(t, filepath.Join(t.TempDir(), "gone"), Query{Tail: 3}))
}

func TestLastActivity(t *testing.T) {
	t.Parallel()
	old, late := start(), start().Add(time.Hour)
	for name, tc := range map[string]struct {
		older, current time.Time // zero = no file
		empty          bool      // the current one
		want           time.Time
	}{
		"no file":             {},
		"current":             {current: late, want: late},
		"both":                {older: old, current: late, want: late},
		"current not yet":     {older: old, want: old},
		"touched later":       {older: late, current: old, want: late},
		"an empty one":        {current: late, empty: true},
		"an empty one beside": {older: old, current: late, empty: true, want: old},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for path, at := range map[string]time.Time{olderPath(dir): tc.older, currentPath(dir): tc.current} {
				if at.IsZero() {
					continue
				}
				content := rec(0, Stdout, tagFull, "x")
				if tc.empty && path == currentPath(dir) {
					content = ""
				}
				put(t, path, content)
				require.NoError(t, os.Chtimes(path, at, at))
			}
			got, active := LastActivity(dir)
			assert.Equal(t, !tc.want.IsZero(), active)
			assert.WithinDuration(t, tc.want, got, 0)
		})
	}
}

// No content makes a read fail, and a tail is always the end of the whole.
func FuzzRead(f *testing.F) {
	f.Add([]byte(rec(1, Stdout, tagFull, "one")), []byte(rec(2, Stderr, tagPart, "two")), 1)
	f.Add([]byte(rec(1, Stdout, tagPart, "o")+"x"), []byte("\x00\n"+rec(2, Stdout, tagFull, "ne")), 2)
	f.Add([]byte(rec(1, Stdout, tagPart, "a")+rec(1, Stderr, tagPart, "b")), []byte(rec(1, Stdout, tagFull, "c")+rec(1, Stderr, tagPart, "d")), 1)
	f.Fuzz(func(t *testing.T, older, current []byte, tail int) {
		dir := t.TempDir()
		put(t, olderPath(dir), string(older))
		put(t, currentPath(dir), string(current))
		all := lines(t, dir, Query{})
		got := lines(t, dir, Query{Tail: tail})
		if tail <= 0 {
			require.Equal(t, all, got)
			return
		}
		require.LessOrEqual(t, len(got), min(tail, len(all)))
	})
}
