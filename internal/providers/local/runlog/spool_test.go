package runlog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// badDisk fails a Writer's writes on demand, after a number of bytes.
type badDisk struct {
	bad   bool
	after int
}

func (d *badDisk) write(f *os.File, b []byte) (int, error) {
	if !d.bad {
		return f.Write(b)
	}
	n, err := f.Write(b[:min(d.after, len(b))])
	if err == nil {
		err = syscall.ENOSPC
	}
	return n, err
}

func TestFullDiskNeverStopsTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := NewWriter(dir, largeCap)
	at, disk := start(), &badDisk{}
	w.now, w.spool.write = func() time.Time { return at }, disk.write
	say(w.Stream(Stdout), "before\n")
	disk.bad = true
	n, err := w.Stream(Stdout).Write([]byte("lost\n"))
	require.NoError(t, err)
	assert.Equal(t, 5, n)
	assert.EqualValues(t, 4, w.Dropped())

	disk.bad = false
	say(w.Stream(Stdout), "early\n")
	assert.EqualValues(t, 9, w.Dropped(), "the disk is left alone for a while")
	at = at.Add(retryAfter)
	say(w.Stream(Stdout), "after\n")
	require.NoError(t, w.Close())
	assert.EqualValues(t, 9, w.Dropped())
	assert.Equal(t, []string{"before", "after"}, texts(lines(t, dir, Query{})))
}

func TestCloseTriesTheDiskOnceMore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := NewWriter(dir, largeCap)
	disk := &badDisk{bad: true}
	w.now, w.spool.write = start, disk.write
	say(w.Stream(Stdout), "lost\nlast words")
	disk.bad = false
	require.NoError(t, w.Close())
	assert.Equal(t, []string{"last words"}, texts(lines(t, dir, Query{})))
}

func TestCloseSaysThatTheEndIsMissing(t *testing.T) {
	t.Parallel()
	w := NewWriter(filepath.Join(t.TempDir(), "gone"), largeCap)
	say(w.Stream(Stdout), "lost")
	require.ErrorIs(t, w.Close(), os.ErrNotExist)
	assert.EqualValues(t, 4, w.Dropped())
}

func TestTornWrites(t *testing.T) {
	t.Parallel()
	whole := len(rec(0, Stdout, tagFull, "first"))
	for name, tc := range map[string]struct {
		after   int // bytes of the bad write that reach the disk
		want    []string
		dropped int64
	}{
		"nothing":         {0, []string{"next"}, 11},
		"inside the head": {10, []string{"next"}, 11},
		"inside the text": {whole - 3, []string{"fir", "next"}, 8},
		"before the end":  {whole - 1, []string{"first", "next"}, 6},
		"one record":      {whole, []string{"first", "next"}, 6},
		"into the second": {whole + 10, []string{"first", "next"}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w := NewWriter(dir, largeCap)
			at, disk := start(), &badDisk{bad: true, after: tc.after}
			w.now, w.spool.write = func() time.Time { return at }, disk.write
			say(w.Stream(Stdout), "first\nsecond\n")
			assert.Equal(t, tc.dropped, w.Dropped())
			disk.bad, at = false, at.Add(retryAfter)
			say(w.Stream(Stdout), "next\n")
			require.NoError(t, w.Close())
			assert.Equal(t, tc.want, texts(lines(t, dir, Query{})))
			assert.Equal(t, tc.dropped, w.Dropped())
		})
	}
}

// A line whose end was lost is not joined to a later one, whatever the disk
// does: every line read is a piece of one line written.
func TestBadDiskInventsNoLines(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 2))
			dir := t.TempDir()
			w := NewWriter(dir, largeCap)
			at, disk := start(), &badDisk{}
			w.now, w.spool.write = func() time.Time { return at }, disk.write
			var written, stored int64
			for i := range 200 {
				n := r.IntN(100)
				if r.IntN(4) == 0 {
					n = r.IntN(3 * ChunkBytes)
				}
				line := fmt.Sprintf("<%d>", i) + strings.Repeat(fmt.Sprintf("%d,", i), n/4)
				written += int64(len(line))
				say(w.Stream(streamAt(r.IntN(streams))), "%s\n", line)
				disk.bad, disk.after = r.IntN(3) == 0, r.IntN(ChunkBytes)
				at = at.Add(time.Duration(r.IntN(1500)) * time.Millisecond)
			}
			disk.bad = false
			_ = w.Close() // fails when the last write did
			for _, l := range lines(t, dir, Query{}) {
				stored += int64(len(l.Text))
				requireOneLine(t, l.Text)
			}
			require.Equal(t, written, stored+w.Dropped(), "seed %d", seed)
		})
	}
}

// requireOneLine checks that a text is a piece of one line `<i>i,i,i,...`. It
// asserts on short values, so that a failure can be read.
func requireOneLine(t *testing.T, text string) {
	t.Helper()
	require.LessOrEqual(t, strings.LastIndexByte(text, '<'), 0, "a line begins inside another")
	_, body, found := strings.Cut(text, ">")
	if !found {
		body = strings.TrimPrefix(text, "<")
	}
	words := strings.Split(body, ",")
	if len(words) < 4 {
		return
	}
	whole := words[1 : len(words)-1]
	require.Equal(t, len(whole), strings.Count(","+strings.Join(whole, ",,")+",", ","+words[1]+","), "two lines are joined")
}

func TestDirectoryRemovedUnderneath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "box")
	require.NoError(t, os.Mkdir(dir, 0o700))
	w := NewWriter(dir, MinCapBytes)
	say(w.Stream(Stdout), "first\n")
	require.NoError(t, os.RemoveAll(dir))
	for range 10 {
		say(w.Stream(Stdout), "%s\n", strings.Repeat("x", ChunkBytes))
	}
	assert.Positive(t, w.Dropped())
	require.Error(t, w.Close())
}

func TestRotationThatFailsKeepsTheCap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(olderPath(dir), "in the way"), 0o700))
	w := NewWriter(dir, MinCapBytes)
	for range 20 {
		say(w.Stream(Stdout), "%s\n", strings.Repeat("x", 10_000))
	}
	assert.LessOrEqual(t, fileSize(t, currentPath(dir)), int64(MinCapBytes/2))
	assert.Positive(t, w.Dropped())
	require.Error(t, w.Close())
}
