package publish

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"sbx/internal/testkit/tiertest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// 20 races (60 in the long run) of a publish and a stop, both past their last read when they start: exactly one
// wins, and the branch exists exactly when the publish won.
func TestRacesOfPublishAndStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("work")
	bundle, head := w.collect(w.base), w.head()
	races, published := 20, 0
	if tiertest.IsLong("60 races of a publication and a stop; else 20") {
		races = 60
	}
	for i := range races {
		n := strconv.Itoa(i)
		p := Push{Task: "t" + n, Fence: 1, Target: w.target("agent/" + n), Bundle: bundle}
		mark, pubErr := w.race(p, time.Duration(i%5-2)*3*time.Millisecond)
		won := w.at("refs/heads/agent/"+n) == head
		if won {
			published++
		}
		require.Equal(t, won, pubErr == nil, "race %d: %v", i, pubErr)
		require.Equal(t, won, mark.Verdict == Published, "race %d: %+v", i, mark)
		if !won {
			require.ErrorIs(t, pubErr, ErrStopped, "race %d", i)
			require.Equal(t, Stopped, mark.Verdict)
		}
	}
	t.Logf("%d of %d published", published, races)
}

// race starts both at once; with a positive lead the publish starts first. It returns the
// result of the stop, and the error of the publish.
func (w *world) race(p Push, lead time.Duration) (mark Mark, published error) {
	var ready, done sync.WaitGroup
	ready.Add(2)
	at := func(delay time.Duration) *Git {
		g := *w.git
		g.beforePush = func() {
			ready.Done()
			ready.Wait()
			<-time.After(delay)
		}
		return &g
	}
	done.Go(func() { _, published = at(max(0, -lead)).Publish(w.t.Context(), p) })
	done.Go(func() {
		var err error
		mark, err = at(max(0, lead)).ForbidPublish(w.t.Context(), p.Task, p.Target, "ann", w.git.Now())
		assert.NoError(w.t, err)
	})
	done.Wait()
	return mark, published
}

// Many stops and many publishers of one task: all get the same winner.
func TestCrowdAtOneFence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.work("t1", "agent/t1")
	verdicts := make(chan Verdict, 8)
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			m, err := w.git.ForbidPublish(t.Context(), "t1", p.Target, "ann", w.git.Now())
			assert.NoError(t, err)
			verdicts <- m.Verdict
		})
		done.Go(func() {
			_, err := w.git.Publish(t.Context(), p)
			if err == nil {
				verdicts <- Published
				return
			}
			assert.ErrorIs(t, err, ErrStopped)
			verdicts <- Stopped
		})
	}
	done.Wait()
	close(verdicts)
	first := <-verdicts
	for v := range verdicts {
		assert.Equal(t, first, v)
	}
	assert.Equal(t, first == Published, w.at("refs/heads/agent/t1") != "")
}
