package runlog

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhatRotationDropsIsTold: the lines read and the lines reported as missing are together
// the lines written, whatever was written and however often the log was reopened.
func TestWhatRotationDropsIsTold(t *testing.T) {
	t.Parallel()
	dropped := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 11))
		dir, written := t.TempDir(), 0
		for range 1 + r.IntN(3) {
			w := NewWriter(dir, MinCapBytes)
			for range 1 + r.IntN(200) {
				say(w.Stream(streamAt(r.IntN(streams))), "%s\n", text(r, r.IntN(3*ChunkBytes)))
				written++
			}
			require.NoError(t, w.Close())
		}
		got, gaps := linesAndGaps(t, dir, Query{})
		require.LessOrEqual(t, len(gaps), 1)
		missing := 0
		for _, n := range gaps {
			missing += n
		}
		require.Equal(t, written, len(got)+missing, "seed %d", seed)
		dropped += missing

		_, gaps = linesAndGaps(t, dir, Query{Tail: len(got)})
		assert.Empty(t, gaps, "what was asked for is all there")
		all, gaps := linesAndGaps(t, dir, Query{Tail: len(got) + 1})
		assert.Len(t, all, len(got))
		assert.Equal(t, missing > 0, len(gaps) == 1, "fewer lines are there than were asked for")
	}
	require.Positive(t, dropped, "nothing was dropped in any of them")
}

func TestAGapHasTheTimeOfItsLastLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := NewWriter(dir, MinCapBytes)
	at := start()
	w.now = func() time.Time { at = at.Add(time.Second); return at }
	for range 4000 {
		say(w.Stream(Stdout), "%s\n", strings.Repeat("x", 100))
	}
	require.NoError(t, w.Close())
	got, gaps := linesAndGaps(t, dir, Query{})
	require.Len(t, gaps, 1)
	first := got[0].At
	_, gaps = linesAndGaps(t, dir, Query{Since: first})
	assert.Empty(t, gaps, "nothing is missing since the first line that is there")
	_, gaps = linesAndGaps(t, dir, Query{Since: first.Add(-time.Second)})
	assert.Len(t, gaps, 1, "the line before it is missing")
}

// TestAFollowerThatFallsBehindIsTold: a follower overtaken by two rotations gets the number of
// lines that it missed.
func TestAFollowerThatFallsBehindIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := NewWriter(dir, MinCapBytes)
	write := func(from, n int) {
		for i := range n {
			say(w.Stream(Stdout), "%d %s\n", from+i, strings.Repeat("x", 1000))
		}
	}
	write(0, 10)
	done, seen, missing := make(chan struct{}), 0, 0
	for l, err := range readWith(t.Context(), dir, Query{Follow: true, Done: done}, newNotifier) {
		require.NoError(t, err)
		if l.Gap != nil {
			missing += int(*l.Gap.Lines)
			continue
		}
		if seen == 0 {
			write(10, 1000)
			require.NoError(t, w.Close())
			close(done)
		}
		seen++
	}
	assert.Positive(t, missing)
	assert.Equal(t, 1010, seen+missing)
}

// TestALostHeadIsWrittenAgain: a disk that is full at a rotation loses no account of it.
func TestALostHeadIsWrittenAgain(t *testing.T) {
	t.Parallel()
	for _, after := range []int{0, 1, 30, 44} {
		t.Run(strconv.Itoa(after), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w := NewWriter(dir, MinCapBytes)
			disk := &badDisk{after: after}
			n := 0
			fill := func(rotations int64) {
				for before := w.spool.before.lines; rotations > 0; n++ {
					say(w.Stream(Stdout), "%d %s\n", n, strings.Repeat("x", 1000))
					if w.spool.before.lines != before {
						before, rotations = w.spool.before.lines, rotations-1
					}
				}
			}
			fill(1)
			w.spool.write = func(f *os.File, b []byte) (int, error) {
				disk.bad = w.spool.noHead && !disk.bad
				return disk.write(f, b)
			}
			fill(1)
			w.spool.retryAt = time.Time{}
			w.spool.write = (*os.File).Write
			say(w.Stream(Stdout), "last\n")
			require.NoError(t, w.Close())
			got, gaps := linesAndGaps(t, dir, Query{})
			require.Len(t, gaps, 1)
			assert.Equal(t, "last", got[len(got)-1].Text)
			stored := n + 1 - int(w.Dropped()/1003)
			assert.InDelta(t, stored, len(got)+gaps[0], 1)
		})
	}
}
