package output

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const wiped = "\r\x1b[K"

func TestProgressAppearsAfterASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(place{width: 40})
		g := s.printer(t, "table").Progress("listing")
		g.Update("1 of 5 providers")
		advance(999 * time.Millisecond)
		assert.Empty(t, s.err.String(), "nothing under a second")
		advance(2 * time.Millisecond)
		assert.Equal(t, "listing: 1 of 5 providers", s.err.String())
		g.Update("2 of 5 providers\x1b[2J, waiting for daytona")
		assert.Equal(t, "listing: 1 of 5 providers"+wiped+`listing: 2 of 5 providers\x1b[2J, wait…`, s.err.String())
		g.Done()
		assert.True(t, strings.HasSuffix(s.err.String(), wiped))
		before := s.err.String()
		g.Update("late")
		g.Done()
		assert.Equal(t, before, s.err.String(), "silent after Done")
		assert.Empty(t, s.out.String())
	})
}

// advance moves the fake clock of the bubble.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
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

func TestProgressStaysAway(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		at    place
		quiet bool
	}{
		"pipe":  {place{}, false},
		"quiet": {place{width: 80}, true},
		"dumb":  {place{width: 80, env: []string{"TERM=dumb"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(tc.at)
				g := s.printer(t, "table", func(o *Options) { o.Quiet = tc.quiet }).Progress("listing")
				advance(time.Hour)
				g.Update("x")
				g.Done()
				assert.Empty(t, s.err.String())
			})
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
		assert.Equal(t, "listing"+wiped+"sbx: a note\n", s.err.String())
		g.Update("again")
		require.NoError(t, p.Line("data"))
		assert.Equal(t, "listing"+wiped+"sbx: a note\nlisting: again"+wiped, s.err.String(), "data on the same screen wipes too")
		g.Done()
		assert.Equal(t, "data\n", s.out.String())
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
