package runlog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func TestWriterFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := NewWriter(dir, largeCap)
	at := start()
	w.now = func() time.Time { at = at.Add(time.Second); return at }
	say(w.Stream(Stdout), "one\ntwo\nthr")
	say(w.Stream(Stderr), "bad\n")
	say(w.Stream(Stdout), "ee\n\nopen")
	require.NoError(t, w.Close())

	got, err := os.ReadFile(filepath.Join(dir, "output.log"))
	require.NoError(t, err)
	assert.Equal(t, strings.Join([]string{
		"2026-11-20T01:02:04Z stdout F one",
		"2026-11-20T01:02:04Z stdout F two",
		"2026-11-20T01:02:05Z stderr F bad",
		"2026-11-20T01:02:06Z stdout F three",
		"2026-11-20T01:02:06Z stdout F ",
		"2026-11-20T01:02:07Z stdout F open",
		"",
	}, "\n"), string(got))
	assert.NoFileExists(t, filepath.Join(dir, "output.log.1"))
}

func TestWriterSplitsLongLines(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pieces []int
		ended  bool
		want   string // tags and lengths
	}{
		"exactly one chunk":  {[]int{ChunkBytes}, true, "F16384"},
		"one byte more":      {[]int{ChunkBytes + 1}, true, "P16384 F1"},
		"byte after a chunk": {[]int{ChunkBytes, 1}, true, "P16384 F1"},
		"two chunks":         {[]int{2 * ChunkBytes}, true, "P16384 F16384"},
		"not ended":          {[]int{ChunkBytes + 5}, false, "P16384 F5"},
		"small pieces":       {[]int{10000, 10000, 10000}, true, "P16384 F13616"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w := NewWriter(dir, largeCap)
			for _, n := range tc.pieces {
				say(w.Stream(Stdout), "%s", strings.Repeat("x", n))
			}
			if tc.ended {
				say(w.Stream(Stdout), "\n")
			}
			require.NoError(t, w.Close())
			content, err := os.ReadFile(currentPath(dir))
			require.NoError(t, err)
			var got []string
			for line := range bytes.Lines(content) {
				r, ok := parseRecord(bytes.TrimSuffix(line, []byte{'\n'}))
				require.True(t, ok)
				got = append(got, fmt.Sprintf("%c%d", r.tag, len(r.text)))
			}
			assert.Equal(t, tc.want, strings.Join(got, " "))
		})
	}
}

// Whatever is written in whatever pieces comes back line by line.
func TestWrittenComesBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			dir := t.TempDir()
			w := NewWriter(dir, largeCap)
			want := mixed(r, w, 1+r.IntN(120))
			require.NoError(t, w.Close())
			got := map[string][]string{}
			for _, l := range lines(t, dir, Query{}) {
				require.False(t, l.Truncated)
				got[l.Stream] = append(got[l.Stream], l.Text)
			}
			for name := range want { // what ends in an empty open line has no such line
				for len(want[name]) > len(got[name]) && want[name][len(want[name])-1] == "" {
					want[name] = want[name][:len(want[name])-1]
				}
				require.Equal(t, want[name], got[name], "seed %d, %s", seed, name)
			}
			require.Zero(t, w.Dropped())
		})
	}
}

func FuzzWriter(f *testing.F) {
	f.Add([]byte("a\nb"), []byte("\n\n"), uint16(1))
	f.Add([]byte("\x00\xff \r\n"), []byte(""), uint16(0))
	f.Add(bytes.Repeat([]byte("x"), 100), bytes.Repeat([]byte("y\n"), 50), uint16(700))
	f.Fuzz(func(t *testing.T, first, second []byte, repeat uint16) {
		dir := t.TempDir()
		w := NewWriter(dir, largeCap)
		whole := bytes.Repeat(first, int(repeat)%1000+1)
		whole = append(whole, second...)
		if len(whole) > MaxLineBytes {
			whole = whole[:MaxLineBytes]
		}
		cut := len(whole) / 3
		for _, piece := range [][]byte{whole[:cut], whole[cut : 2*cut], whole[2*cut:]} {
			n, err := w.Stream(Stdout).Write(piece)
			require.NoError(t, err)
			require.Len(t, piece, n)
		}
		require.NoError(t, w.Close())
		var got []byte
		for _, l := range lines(t, dir, Query{}) {
			got = append(append(got, l.Text...), '\n')
		}
		if len(whole) > 0 && whole[len(whole)-1] != '\n' {
			whole = append(whole, '\n')
		}
		require.Equal(t, string(whole), string(got))
	})
}

func TestWriterKeepsTheNewestUnderTheCap(t *testing.T) {
	t.Parallel()
	for _, capBytes := range []int64{0, MinCapBytes, 300_000} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w := NewWriter(dir, capBytes)
			const n = 20_000
			for i := range n {
				say(w.Stream(Stdout), "line %d\n", i)
				if i%997 != 0 {
					continue
				}
				older, current := fileSize(t, olderPath(dir)), fileSize(t, currentPath(dir))
				require.LessOrEqual(t, older+current, max(capBytes, MinCapBytes))
			}
			require.NoError(t, w.Close())
			got := lines(t, dir, Query{})
			require.NotEmpty(t, got)
			for i, l := range got {
				require.Equal(t, fmt.Sprintf("line %d", n-len(got)+i), l.Text)
			}
			kept := fileSize(t, olderPath(dir)) + fileSize(t, currentPath(dir))
			assert.Greater(t, kept, max(capBytes, MinCapBytes)/2-batchBytes)
			assert.Zero(t, w.Dropped(), "rotation drops nothing that the Writer counts")
		})
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return info.Size()
}

func TestWriterTakesBothStreamsAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := NewWriter(dir, largeCap)
	const n = 2000
	var wg sync.WaitGroup
	for _, name := range []Stream{Stdout, Stderr} {
		wg.Go(func() {
			for i := range n {
				say(w.Stream(name), "%s %d\n", name, i)
			}
		})
	}
	wg.Go(func() {
		for range 100 {
			w.Flush()
			w.Dropped()
		}
	})
	wg.Wait()
	require.NoError(t, w.Close())
	var next [streams]int
	for _, l := range lines(t, dir, Query{}) {
		i := Stream(l.Stream).index()
		require.Equal(t, fmt.Sprintf("%s %d", l.Stream, next[i]), l.Text)
		next[i]++
	}
	assert.Equal(t, [streams]int{n, n}, next)
}

func TestFlushShowsOpenLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := NewWriter(dir, largeCap)
	say(w.Stream(Stdout), "password: ")
	assert.Empty(t, lines(t, dir, Query{}))
	w.Flush()
	assert.Equal(t, []string{"password: "}, texts(lines(t, dir, Query{})))
	_, active := LastActivity(dir)
	assert.True(t, active)
	w.Flush()
	say(w.Stream(Stdout), "secret\nnext\n")
	assert.Equal(t, []string{"password: secret", "next"}, texts(lines(t, dir, Query{})))
	require.NoError(t, w.Close())
	w.Flush()
	assert.Equal(t, []string{"password: secret", "next"}, texts(lines(t, dir, Query{})))
}

func TestEndLinesKeepsLaterOutputApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := NewWriter(dir, largeCap)
	out := w.Stream(Stdout)
	write := func(text string) {
		_, err := out.Write([]byte(text))
		require.NoError(t, err)
	}
	w.EndLines()
	require.Empty(t, lines(t, dir, Query{}), "no line was open")
	write("one\ntwo")
	w.Flush() // part of it is on disk already
	w.EndLines()
	w.EndLines()
	write("three\n")
	require.NoError(t, w.Close())
	w.EndLines()
	require.Equal(t, []string{"one", "two", "three"}, texts(lines(t, dir, Query{})))
}

func TestClosedWriterDropsAndCloses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := NewWriter(dir, largeCap)
	say(w.Stream(Stdout), "kept")
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	n, err := w.Stream(Stdout).Write([]byte("late"))
	require.NoError(t, err)
	assert.Equal(t, 4, n)
	assert.EqualValues(t, 4, w.Dropped())
	assert.Equal(t, []string{"kept"}, texts(lines(t, dir, Query{})))
}

func TestSilentProgramLeavesNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := NewWriter(dir, largeCap)
	n, err := w.Stream(Stderr).Write(nil)
	require.NoError(t, err)
	assert.Zero(t, n)
	require.NoError(t, w.Close())
	assert.NoFileExists(t, currentPath(dir))
	_, active := LastActivity(dir)
	assert.False(t, active)
	assert.Empty(t, lines(t, dir, Query{}))
}

func TestWriterContinuesALog(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before string
		want   []sandbox.LogLine
	}{
		"whole": {rec(0, Stdout, tagFull, "old"), []sandbox.LogLine{{At: start(), Stream: "stdout", Text: "old"}}},
		"torn":  {"2026-11-20T01:0", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, currentPath(dir), tc.before)
			w := NewWriter(dir, largeCap)
			w.now = start
			say(w.Stream(Stderr), "new\n")
			require.NoError(t, w.Close())
			want := append(tc.want, sandbox.LogLine{At: start(), Stream: "stderr", Text: "new"})
			assert.Equal(t, want, lines(t, dir, Query{}))
		})
	}
}
