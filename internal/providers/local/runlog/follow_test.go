package runlog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := NewWriter(dir, largeCap)
	say(w.Stream(Stdout), "one\ntwo\n")
	f := follow(t.Context(), dir, 0, newNotifier)
	f.expect(t, "one", "two")
	say(w.Stream(Stdout), "three\nfo")
	f.expect(t, "three")
	w.Flush()
	say(w.Stream(Stderr), "bad\n")
	f.expect(t, "bad")
	say(w.Stream(Stdout), "ur\n")
	f.expect(t, "four")
	say(w.Stream(Stdout), "last words")
	require.NoError(t, w.Close())
	f.expect(t, "last words")
	close(f.done)
	require.NoError(t, f.ends(t))
}

func TestFollowBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := follow(t.Context(), dir, 5, newNotifier)
	w := NewWriter(dir, largeCap)
	say(w.Stream(Stdout), "one\n")
	f.expect(t, "one")
	close(f.done)
	require.NoError(t, f.ends(t))
	require.NoError(t, w.Close())
}

func TestFollowOfAnEndedLogReadsItAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, olderPath(dir), rec(1, Stdout, tagFull, "one"), rec(2, Stdout, tagPart, "t"))
	put(t, currentPath(dir), rec(2, Stdout, tagFull, "wo"), rec(3, Stderr, tagPart, "open"), rec(4, Stdout, tagFull, "torn")[:len(rec(4, Stdout, tagFull, "torn"))-1])
	f := follow(t.Context(), dir, 0, newNotifier)
	f.expect(t, "one", "two")
	close(f.done)
	f.expect(t, "torn", "open")
	require.NoError(t, f.ends(t))
}

func TestFollowFromATail(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		older, current string
		tail           int
		first          []string
		later          string // appended to the current file
		then           []string
	}{
		"the last one":     {"", rec(1, Stdout, tagFull, "one") + rec(2, Stdout, tagFull, "two"), 1, []string{"two"}, rec(3, Stdout, tagFull, "three"), []string{"three"}},
		"open line":        {"", rec(1, Stdout, tagFull, "one") + rec(2, Stdout, tagPart, "tw"), 1, []string{"one"}, rec(3, Stdout, tagFull, "o"), []string{"two"}},
		"growing record":   {"", rec(1, Stdout, tagFull, "one") + "2026-11-20T01:02:03Z stdout F t", 1, []string{"one"}, "wo\n", []string{"two"}},
		"from the older":   {rec(1, Stdout, tagFull, "one"), "", 1, []string{"one"}, rec(2, Stdout, tagFull, "two"), []string{"two"}},
		"joined by parts":  {rec(1, Stdout, tagPart, "o"), rec(2, Stderr, tagFull, "x") + rec(3, Stdout, tagFull, "ne"), 1, []string{"one"}, rec(2, Stdout, tagFull, "two"), []string{"two"}},
		"more than is had": {"", rec(1, Stdout, tagFull, "one"), 5, []string{"one"}, rec(2, Stdout, tagFull, "two"), []string{"two"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if tc.older != "" {
				put(t, olderPath(dir), tc.older)
			}
			if tc.current != "" {
				put(t, currentPath(dir), tc.current)
			}
			f := follow(t.Context(), dir, tc.tail, newNotifier)
			f.expect(t, tc.first...)
			file, err := os.OpenFile(currentPath(dir), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			require.NoError(t, err)
			say(file, "%s", tc.later)
			require.NoError(t, file.Close())
			f.expect(t, tc.then...)
			close(f.done)
			require.NoError(t, f.ends(t))
		})
	}
}

// A follower that keeps up sees every line over many rotations, also lines that
// lie on both sides of one.
func TestFollowSurvivesRotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := NewWriter(dir, MinCapBytes)
	f := follow(t.Context(), dir, 0, newNotifier)
	for i := range 60 {
		line := fmt.Sprintf("%d %s", i, strings.Repeat("x", ChunkBytes))
		say(w.Stream(Stdout), "%s\n", line)
		f.expect(t, line)
	}
	assert.FileExists(t, olderPath(dir))
	require.NoError(t, w.Close())
	close(f.done)
	require.NoError(t, f.ends(t))
}

// A follower that falls behind misses what is rotated away, says so, and joins
// nothing across the gap.
func TestFollowAcrossAGap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, currentPath(dir), rec(1, Stdout, tagFull, "one"), rec(2, Stdout, tagPart, "head"))
	f := follow(t.Context(), dir, 0, newNotifier)
	f.expect(t, "one")
	next := filepath.Join(t.TempDir(), "next")
	require.NoError(t, os.Mkdir(next, 0o700))
	put(t, olderPath(next), rec(3, Stdout, tagFull, "older"))
	put(t, currentPath(next), rec(4, Stdout, tagFull, "newer"))
	require.NoError(t, os.Rename(olderPath(next), olderPath(dir)))
	require.NoError(t, os.Rename(currentPath(next), currentPath(dir)))
	l := <-f.lines
	assert.Equal(t, "head", l.Text)
	assert.True(t, l.Truncated)
	f.expect(t, "older", "newer")
	close(f.done)
	require.NoError(t, f.ends(t))
}

// The Writer leaves a torn record behind when the disk is full and it then
// rotates: no more of it will come.
func TestFollowOfATornFileThatIsRotatedAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	torn := rec(2, Stdout, tagFull, "torn")
	put(t, currentPath(dir), rec(1, Stdout, tagFull, "one"), torn[:len(torn)-2])
	f := follow(t.Context(), dir, 0, newNotifier)
	f.expect(t, "one")
	require.NoError(t, os.Rename(currentPath(dir), olderPath(dir)))
	put(t, currentPath(dir), rec(3, Stdout, tagFull, "next"))
	l := <-f.lines
	assert.Equal(t, "tor", l.Text)
	assert.True(t, l.Truncated)
	f.expect(t, "next")
	close(f.done)
	require.NoError(t, f.ends(t))
}

func TestFollowOfACutFileStartsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, currentPath(dir), rec(1, Stdout, tagFull, "a long line that is there no more"))
	f := follow(t.Context(), dir, 0, newNotifier)
	f.expect(t, "a long line that is there no more")
	put(t, currentPath(dir), rec(2, Stdout, tagFull, "new"))
	f.expect(t, "new")
	close(f.done)
	require.NoError(t, f.ends(t))
}

func TestFollowEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	put(t, currentPath(dir), rec(1, Stdout, tagFull, "one"))
	f := follow(ctx, dir, 0, newNotifier)
	f.expect(t, "one")
	cancel()
	require.ErrorIs(t, f.ends(t), context.Canceled)
}

// The file goes before the directory does, and the follower looks in between: it
// must not hold the file open, or the system keeps the directory's end to itself.
func TestFollowEndsWithTheDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "box")
	require.NoError(t, os.Mkdir(dir, 0o700))
	put(t, currentPath(dir), rec(1, Stdout, tagFull, "one"), rec(2, Stdout, tagPart, "open"))
	f := follow(t.Context(), dir, 0, newNotifier)
	f.expect(t, "one")
	require.NoError(t, os.Remove(currentPath(dir)))
	f.expect(t, "open")
	require.NoError(t, os.Remove(dir))
	require.NoError(t, f.ends(t))
}

// Whichever file is removed first, no line is given twice.
func TestFollowOfALogThatIsRemoved(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string][]func(string) string{
		"current first": {currentPath, olderPath},
		"older first":   {olderPath, currentPath},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "box")
			require.NoError(t, os.Mkdir(dir, 0o700))
			put(t, olderPath(dir), rec(0, Stdout, tagFull, "zero"))
			put(t, currentPath(dir), rec(1, Stdout, tagFull, "one"), rec(2, Stdout, tagPart, "open"))
			f, looks := byHand(t, dir)
			got, ended := f.look(t, looks)
			for _, path := range []string{remove[0](dir), remove[1](dir), dir} {
				require.NoError(t, os.Remove(path))
				require.False(t, ended)
				var more []string
				more, ended = f.look(t, looks)
				got = append(got, more...)
			}
			assert.True(t, ended)
			assert.Equal(t, []string{"zero", "one", "open"}, got)
		})
	}
}

// byHand follows a log that is looked at when the test says so.
func byHand(t *testing.T, dir string) (follower, chan<- time.Time) {
	t.Helper()
	looks := make(chan time.Time)
	return follow(t.Context(), dir, 0, func(string) *notifier { return &notifier{ticks: looks} }), looks
}

// look makes the follower look, and gives what it found and whether it ended. The
// second look is taken up when the first is over.
func (f follower) look(t *testing.T, looks chan<- time.Time) ([]string, bool) {
	t.Helper()
	var got []string
	for n := 0; n < 2; {
		select {
		case looks <- time.Time{}:
			n++
		case l := <-f.lines:
			got = append(got, l.Text)
		case err := <-f.end:
			require.NoError(t, err)
			return got, true
		}
	}
	return got, false
}

func TestFollowReportsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, currentPath(dir), rec(1, Stdout, tagFull, "one"))
	f := follow(t.Context(), dir, 0, newNotifier)
	f.expect(t, "one")
	require.NoError(t, os.Remove(currentPath(dir)))
	require.NoError(t, os.Mkdir(currentPath(dir), 0o700))
	require.Error(t, f.ends(t))
}

// Where there is no watch, the follower looks twice a second and no more often.
func TestFollowByPolling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		put(t, currentPath(dir), rec(1, Stdout, tagFull, "one"))
		begin := time.Now()
		f := follow(ctx, dir, 0, func(string) *notifier { return newPoller() })
		f.expect(t, "one")
		synctest.Wait()
		put(t, currentPath(dir), rec(1, Stdout, tagFull, "one"), rec(2, Stdout, tagFull, "two"))
		f.expect(t, "two")
		assert.Equal(t, 500*time.Millisecond, time.Since(begin))
		cancel()
		require.ErrorIs(t, f.ends(t), context.Canceled)
	})
}

func TestNotifierWithoutADirectoryPolls(t *testing.T) {
	t.Parallel()
	n := newNotifier(filepath.Join(t.TempDir(), "gone"))
	t.Cleanup(n.closeWatch)
	assert.Nil(t, n.watcher)
	assert.NotNil(t, n.ticks)
}

func TestNotifierWatchesWithoutATimer(t *testing.T) {
	t.Parallel()
	n := newNotifier(t.TempDir())
	t.Cleanup(n.closeWatch)
	assert.NotNil(t, n.watcher)
	assert.Nil(t, n.ticks)
}

func TestNotifierTakesALostEventAsAReasonToLook(t *testing.T) {
	t.Parallel()
	errs := make(chan error, 1)
	errs <- fsnotify.ErrEventOverflow
	n := &notifier{errors: errs}
	require.NoError(t, n.waitForChange(t.Context(), nil))
}
