package output

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/bubble"
)

const wiped = "\r\x1b[K"

// advance moves the fake clock of the bubble.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// lastLine is what stands on the progress line.
func lastLine(s *stage) string {
	parts := strings.Split(s.err.String(), wiped)
	return parts[len(parts)-1]
}

func TestProgressAppearsAfterASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(place{width: 60})
		g := s.printer(t, "table").Progress("listing")
		g.Update("1 of 5 providers")
		advance(999 * time.Millisecond)
		assert.Empty(t, s.err.String(), "nothing under a second")
		advance(2 * time.Millisecond)
		assert.Equal(t, "listing: 1 of 5 providers; 1s", s.err.String())
		g.Update("2 of 5 providers\x1b[2J")
		advance(time.Second)
		assert.Equal(t, `listing: 2 of 5 providers\x1b[2J; 2s`, lastLine(s))
		g.Done()
		assert.True(t, strings.HasSuffix(s.err.String(), wiped))
		before := s.err.String()
		g.Update("late")
		g.Done()
		advance(time.Hour)
		assert.Equal(t, before, s.err.String(), "silent after Done")
		assert.Empty(t, s.out.String())
	})
}

func TestQuickWorkShowsNoProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(place{width: 80})
		g := s.printer(t, "table").Progress("listing")
		advance(500 * time.Millisecond)
		g.Done()
		advance(5 * time.Second)
		assert.Empty(t, s.err.String())
	})
}

// TestProgressNamesTheSlowProvider, and keeps the name while no request is under way.
func TestProgressNamesTheSlowProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(place{width: 80})
		var awaited atomic.Pointer[[]string] // the timer reads it
		awaited.Store(&[]string{"e2b", "daytona", "vercel", "mono"})
		p := s.printer(t, "table", func(o *Options) {
			o.Awaited = func() ([]string, time.Time) { return *awaited.Load(), time.Now() }
		})
		g := p.Progress("listing")
		advance(2 * time.Second)
		assert.Equal(t, "listing; waiting for 4 providers; 2s", lastLine(s))
		awaited.Store(&[]string{"daytona"})
		advance(time.Second)
		assert.Equal(t, "listing; waiting for daytona; 3s", lastLine(s))
		awaited.Store(new([]string))
		advance(time.Minute)
		assert.Equal(t, "listing; waiting for daytona; 1m3s", lastLine(s))
		g.Done()
	})
}

// TestEveryVerbShowsALongWait, also one that says nothing of its progress.
func TestEveryVerbShowsALongWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(place{width: 80})
		var since atomic.Pointer[time.Time] // the timer reads it
		asked := func() { now := time.Now(); since.Store(&now) }
		p := s.printer(t, "table", func(o *Options) {
			o.Awaited = func() ([]string, time.Time) {
				if at := since.Load(); at != nil {
					return []string{"prod"}, *at
				}
				return nil, time.Time{}
			}
		})
		done := p.ShowWaits()
		advance(time.Minute)
		assert.Empty(t, s.err.String(), "no request is under way")
		asked()
		advance(1500 * time.Millisecond)
		assert.Equal(t, "waiting for prod; 1s", lastLine(s))
		asked()
		advance(200 * time.Millisecond)
		assert.Empty(t, lastLine(s), "it has answered")
		since.Store(nil)
		done()
		advance(time.Minute)
		assert.Empty(t, lastLine(s))
	})
}

// TestProgressFitsItsTerminal: figures and time stay when there is no room for the rest.
func TestProgressFitsItsTerminal(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		100: "looking at sandboxes: 3,412 of 10,000; waiting for daytona; 12s",
		63:  "3,412 of 10,000; waiting for daytona; 12s",
		40:  "3,412 of 10,000; 12s",
		10:  "12s", 3: "1…", 1: "",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(place{width: width})
			p := s.printer(t, "table", func(o *Options) { o.Awaited = func() ([]string, time.Time) { return []string{"daytona"}, time.Now() } })
			g := p.Progress("looking at sandboxes")
			g.Update("3,412 of 10,000")
			advance(12 * time.Second)
			assert.Equal(t, want, lastLine(s), width)
			assert.LessOrEqual(t, cellWidth(lastLine(s)), max(0, width-1))
			g.Done()
		})
	}
}

func TestProgressStaysAway(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]place{
		"quiet":         {width: 80},
		"quiet, plain":  {width: 80, env: []string{"TERM=dumb"}},
		"quiet, a pipe": {},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := newStage(at)
			g := s.printer(t, "table", func(o *Options) { o.Quiet = true }).Progress("listing")
			advance(time.Hour)
			g.Update("x")
			g.Done()
			assert.Empty(t, s.err.String())
		})
	}
}

// TestAPipeGetsALineWhereTheWaitIsLong: from five seconds on, also over several waits, and then every ten.
func TestAPipeGetsALineWhereTheWaitIsLong(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{nil, {"SBX_ACCESSIBLE=1"}, {"CI=true"}, {"CI=true", "TERM=dumb"}} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(place{env: env})
			p := s.printer(t, "table")
			wait := func(label string, d time.Duration) {
				g := p.Progress(label)
				defer g.Done()
				advance(d)
			}
			wait("listing", 4*time.Second)
			assert.Empty(t, s.err.String())
			wait("looking", 3*time.Second)
			assert.Equal(t, "sbx: looking; 1s\n", s.err.String())
			wait("looking", 16*time.Second)
			assert.Equal(t, "sbx: looking; 1s\nsbx: looking; 8s\n", s.err.String())
			done := p.ShowWaits() // a verb that repeats is silent between its rounds
			advance(time.Minute)
			wait("looking", 4*time.Second)
			done()
			assert.Equal(t, 2, strings.Count(s.err.String(), "\n"), "a new silence, and a short one")
		})
	}
}

// TestPlainProgressIsALineEveryTenSeconds, however many waits follow each other.
func TestPlainProgressIsALineEveryTenSeconds(t *testing.T) {
	t.Parallel()
	for _, env := range []string{"TERM=dumb", "SBX_ACCESSIBLE=1", "CI=true"} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(place{width: 20, env: []string{env}})
			p := s.printer(t, "table")
			for range 2 {
				g := p.Progress("looking at sandboxes")
				g.Update("3 of 9")
				advance(12*time.Second + 500*time.Millisecond)
				g.Done()
			}
			assert.Equal(t, "sbx: looking at sandboxes: 3 of 9; 1s\nsbx: looking at sandboxes: 3 of 9; 11s\nsbx: looking at sandboxes: 3 of 9; 8s\n", s.err.String(), env)
		})
	}
}

func TestProgressMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(place{width: 80})
		p := s.printer(t, "table")
		g := p.Progress("listing")
		advance(2 * time.Second)
		p.Note("a note")
		assert.True(t, strings.HasSuffix(s.err.String(), "listing; 2s"+wiped+"sbx: a note\n"), "%q", s.err.String())
		advance(time.Second)
		assert.Contains(t, s.err.String(), "sbx: a note\nlisting; 2s", "it comes back")
		require.NoError(t, p.Line("data"))
		assert.True(t, strings.HasSuffix(s.err.String(), "listing; 3s"+wiped), "data on the same screen wipes too")
		g.Done()
		assert.Equal(t, "data\n", s.out.String())
	})
}

// TestProgressBreaksNoLine: it waits for the end of a line, and for the answer to a question.
func TestProgressBreaksNoLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(place{width: 80})
		p := s.printer(t, "table")
		g := p.Progress("listing")
		defer g.Done()
		_, err := p.Stdout().Write([]byte("half a line"))
		require.NoError(t, err)
		advance(5 * time.Second)
		assert.Empty(t, s.err.String())
		require.NoError(t, p.Line(", and its end"))
		advance(time.Second)
		assert.Equal(t, "listing; 6s", lastLine(s))

		answered := p.Prompt("type y: ")
		before := s.err.String()
		assert.True(t, strings.HasSuffix(before, wiped+"type y: "))
		advance(time.Minute)
		assert.Equal(t, before, s.err.String())
		answered(true)
		advance(time.Second)
		assert.True(t, strings.HasSuffix(s.err.String(), "listing; 1m7s"))
	})
}

func TestProgressFromManyGoroutines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(place{width: 80})
		p := s.printer(t, "table")
		g := p.Progress("working")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 20 {
					g.Update("x")
					p.Note("note")
					p.Progress("inner").Done()
					advanceAlone(100 * time.Millisecond)
				}
			})
		}
		all.Wait()
		g.Done()
		assert.Equal(t, 160, strings.Count(s.err.String(), "sbx: note\n"))
	})
}

func advanceAlone(d time.Duration) { <-time.After(d) }
