package task_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// TestAClaimIsGivenOnce also when the keeper was suspended.
func TestAClaimIsGivenOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		list := &task.KeepList{Store: store.Memory(time.Now)}
		one := task.Kept{Ref: sandbox.Ref{Provider: "cloud", ID: "b1"}, ExpiresAt: time.Now().Add(time.Hour)}
		claim := func(by string) bool {
			mine, err := list.Claim(t.Context(), one.Ref, by)
			require.NoError(t, err)
			return mine
		}
		assert.False(t, claim("t-2"), "it is not on the list")
		require.NoError(t, list.Keep(t.Context(), one, "t-1"))
		require.NoError(t, list.Keep(t.Context(), one, "t-1"))
		assert.True(t, claim("t-2"))
		assert.True(t, claim("t-2"), "the answer may have been lost")
		assert.False(t, claim("t-3"))
		require.NoError(t, list.Return(t.Context(), one.Ref, "t-3"))
		assert.False(t, claim("t-3"), "nobody gives back what is somebody else's")
		require.NoError(t, list.Return(t.Context(), one.Ref, "t-2"))
		assert.True(t, claim("t-3"))
		require.NoError(t, list.Return(t.Context(), one.Ref, "t-3"))
		assert.True(t, claim("t-2"))
		require.NoError(t, list.Keep(t.Context(), one, "t-1"), "by a process that was frozen")
		assert.False(t, claim("t-3"))
		waiting, err := list.Waiting(t.Context())
		require.NoError(t, err)
		assert.Empty(t, waiting)

		two := task.Kept{Ref: sandbox.Ref{Provider: "cloud", ID: "b2"}, ExpiresAt: time.Now().Add(time.Hour)}
		require.NoError(t, list.Keep(t.Context(), two, "t-1"))
		<-time.After(time.Hour)
		one = two
		assert.False(t, claim("t-2"), "its time is over")
	})
}

// TestWhatIsKeptEnds when its time is over, and when its claimer died before recording that;
// and never while a task has it.
func TestWhatIsKeptEnds(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		list := &task.KeepList{Store: s.mem}
		s.tune = func(_ *proc, o *task.Options) { o.KeepList = list }
		spec := plain()
		spec.KeepAlive = 5 * time.Minute
		kept := func(id string) task.Kept {
			_, over := s.begin(id, spec, works(time.Second, sandbox.ClassOK))
			require.NoError(t, <-over)
			require.NotNil(t, s.now(t, id).Kept)
			return *s.now(t, id).Kept
		}
		p := s.boot("sweep", "h1", "any")
		end := func() (refs []sandbox.Ref) {
			refs, err := task.EndKept(p.ctx, p.options())
			require.NoError(t, err)
			return refs
		}
		old, lost, used := kept("t-1"), kept("t-2"), kept("t-3")
		assert.Empty(t, end(), "they may be claimed yet")
		elsewhere := old
		elsewhere.Ref.ID, elsewhere.Host, elsewhere.ExpiresAt = "b99", "h2", time.Now()
		o := p.options()
		o.HostBound, o.KeepList = func(string) bool { return true }, &task.KeepList{Store: store.Memory(time.Now)}
		require.NoError(t, o.KeepList.Keep(t.Context(), elsewhere, "t-1"))
		gone, err := task.EndKept(p.ctx, o)
		require.NoError(t, err)
		assert.Empty(t, gone, "that this host does not see it proves nothing")

		s.probes = func() (providers.Health, error) { return providers.Health{Condition: providers.ConditionHealthy}, nil }
		running := make(chan struct{})
		s.execs = func(providers.Command) (sandbox.Exit, error) {
			close(running)
			<-time.After(10 * time.Minute)
			code := 0
			return sandbox.Exit{Code: &code, Class: sandbox.ClassOK}, nil
		}
		on := plain()
		on.Sandbox, on.Limits.Command, on.Limits.Attempt, on.NoInactivity = used.Ref, time.Hour, time.Hour, true
		_, over := s.begin("t-4", on)
		<-running
		mine, err := list.Claim(t.Context(), lost.Ref, "t-1") // of a task that is over, and never entered it
		require.NoError(t, err)
		require.True(t, mine)
		assert.Equal(t, []sandbox.Ref{lost.Ref}, end(), "nobody else would end it")
		<-time.After(6 * time.Minute)
		o = p.options()
		o.Protected = func(b sandbox.Sandbox) string { return "protected: " + b.ID }
		gone, err = task.EndKept(p.ctx, o)
		require.NoError(t, err)
		assert.Empty(t, gone, "the operator keeps it")
		asked := time.Now()
		_, err = task.NewStopper(o).End(p.ctx, s.now(t, "t-1"))
		assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
		assert.Less(t, time.Since(asked), task.EndWait, "waiting takes no protection away")
		assert.Equal(t, []sandbox.Ref{old.Ref}, end(), "its time is over; that of t-3's is, too, and a task works in it")
		require.NoError(t, <-over)
		assert.Equal(t, task.Completed, s.now(t, "t-4").State)
	})
}
