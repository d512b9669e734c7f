package task_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// pooled is a world with a process that prewarms sandboxes.
type pooled struct {
	*sim

	warmer *proc
	pool   *task.Pool
	list   *task.KeepList
}

// withPool opens a pool for a number of tasks of one spec.
func withPool(t *testing.T, s *sim, ahead, tasks int) *pooled {
	t.Helper()
	w := &pooled{sim: s, list: &task.KeepList{Store: s.mem}}
	s.probes = func() (providers.Health, error) { return providers.Health{Condition: providers.ConditionHealthy}, nil }
	s.execs = func(providers.Command) (sandbox.Exit, error) {
		code := 0
		return sandbox.Exit{Code: &code, Class: sandbox.ClassOK}, nil
	}
	s.tune = func(p *proc, o *task.Options) {
		if o.KeepList = w.list; p.verb == "run" {
			o.Pool = w.pool
		}
	}
	w.warmer = s.boot("warm", "h1", "ahead")
	specs := make([]task.Spec, tasks)
	for i := range specs {
		specs[i] = unbudgeted()
	}
	w.pool = task.NewPool(w.warmer.ctx, w.warmer.ctx, w.warmer.options(), ahead, specs)
	return w
}

// unbudgeted is a task with retries and a fallback that a missing prewarmed sandbox must
// not use up.
func unbudgeted() task.Spec {
	s := plain()
	s.Budget, s.RetryOn, s.Fallback = "", []sandbox.Class{sandbox.ClassOOM}, []string{"other"}
	return s
}

// does runs one of the tasks to its end.
func (w *pooled) does(t *testing.T, id string) task.Task {
	t.Helper()
	w.pool.TaskBegins(unbudgeted())
	_, over := w.begin(id, unbudgeted(), works(20*time.Second, sandbox.ClassOK))
	require.NoError(t, <-over)
	now := w.now(t, id)
	require.Equal(t, task.Completed, now.State, now.Refused)
	return now
}

func (w *pooled) waiting(t *testing.T) map[sandbox.Ref]time.Time {
	t.Helper()
	all, err := w.list.Waiting(t.Context())
	require.NoError(t, err)
	return all
}

func TestPoolIsUsedOnceAndEnded(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		w := withPool(t, s, 2, 3)
		assert.False(t, w.does(t, "t-1").Attempts[0].Reused, "nothing is made before somebody asks")
		require.Len(t, w.waiting(t), 2)
		second := w.does(t, "t-2")
		require.Len(t, second.Attempts, 1)
		assert.True(t, second.Attempts[0].Reused)
		assert.False(t, second.Attempts[0].GoneAt.IsZero(), "it is used once")
		assert.False(t, second.Resumed, "no session was gone on with")
		require.Len(t, w.waiting(t), 1, "nothing more is needed")
		w.pool.TaskBegins(unbudgeted()) // and then the operator presses Ctrl-C
		require.NoError(t, w.pool.Close(w.warmer.ctx))
		assert.Empty(t, w.waiting(t))
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, b := range s.boxes {
			assert.False(t, b.alive(time.Now()), "%s is left", b)
		}
	})
}

func TestPoolThatIsTooOldIsNotUsed(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		w := withPool(t, s, 1, 2)
		w.does(t, "t-1")
		require.Len(t, w.waiting(t), 1)
		for ref, until := range w.waiting(t) {
			s.mu.Lock()
			b := s.find(ref.ID)
			assert.InDelta(t, b.ttl.Sub(b.made)/2, until.Sub(b.made), float64(5*time.Second), "half of its life")
			s.mu.Unlock()
			<-time.After(time.Until(until))
		}
		assert.False(t, w.does(t, "t-2").Attempts[0].Reused)
		require.NoError(t, w.pool.Close(w.warmer.ctx))
	})
}

func TestPoolThatDoesNotAnswerCostsNoAttemptAndNoTime(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		w := withPool(t, s, 2, 3)
		w.does(t, "t-1")
		s.probes = func() (providers.Health, error) { return providers.Health{}, fault.New(fault.KindGone, "410") }
		second := w.does(t, "t-2")
		assert.Equal(t, []sandbox.Class{sandbox.ClassGone, sandbox.ClassOK}, classes(second))
		assert.False(t, second.Attempts[1].Reused, "the others may be like it")
		assert.Equal(t, 1, second.Counted())
		assert.Equal(t, "cloud", second.Attempts[1].Provider, "that it is gone says nothing of the place")
		assert.Less(t, second.Attempts[1].IntentAt.Sub(second.Attempts[0].EndedAt), 3*time.Second, "no pause: nothing was tried yet")
		assert.False(t, second.Recreated, "no session was lost")
		require.NoError(t, w.pool.Close(w.warmer.ctx))
	})
}

func TestPoolOfADeadProcessIsEnded(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		w := withPool(t, s, 2, 3)
		w.does(t, "t-1")
		require.Len(t, w.waiting(t), 2)
		s.mu.Lock()
		w.warmer.die("a kill -9")
		s.mu.Unlock()
		p := s.boot("sweep", "h1", "any")
		gone, err := task.EndKept(p.ctx, p.options())
		require.NoError(t, err)
		assert.Len(t, gone, 2, "its time is not over, and nobody will come for it")
	})
}

// full is a cloud that makes nothing for a pool.
type full struct {
	task.Sandboxes

	asked *atomic.Int32
}

func (f full) Create(context.Context, string, sandbox.Spec) (sandbox.Sandbox, error) {
	f.asked.Add(1)
	return sandbox.Sandbox{}, fault.New(fault.KindRefused, "no room for it")
}

func TestPoolMakesNoMoreWhereOneCouldNotBeMade(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		w := withPool(t, s, 2, 6)
		o := w.warmer.options()
		var asked atomic.Int32
		var said []string
		o.Sandboxes, o.Notice = full{o.Sandboxes, &asked}, func(text string) { said = append(said, text) }
		specs := []task.Spec{unbudgeted(), unbudgeted(), unbudgeted(), unbudgeted()}
		w.pool = task.NewPool(w.warmer.ctx, w.warmer.ctx, o, 1, specs)
		for _, id := range []string{"t-1", "t-2", "t-3"} {
			assert.False(t, w.does(t, id).Attempts[0].Reused)
		}
		assert.Equal(t, int32(1), asked.Load(), "a provider that refuses is not pressed")
		require.NoError(t, w.pool.Close(w.warmer.ctx))
		require.Len(t, said, 1)
		assert.Contains(t, said[0], "no sandboxes are created ahead at cloud any more: task t-")
	})
}
