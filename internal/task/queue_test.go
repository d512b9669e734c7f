package task_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// budgeted is a task that asks for mb of the budget b, created after a delay.
func budgeted(t *testing.T, l task.Ledger, id string, mb int64, after time.Duration) {
	t.Helper()
	spec := task.Spec{Provider: "p", Command: []string{id}, Attempts: 9, MemoryBytes: mb * sandbox.MiB, Budget: "b"}
	_, added, err := l.Add(t.Context(), task.New(id, "", spec, owner(), time.Now().Add(after)))
	require.NoError(t, err)
	require.True(t, added)
}

func owner() task.Owner { return task.Owner{Host: "h", PID: 1, Who: "test"} }

func take(t *testing.T, l task.Ledger, id string) error {
	t.Helper()
	_, err := l.Change(t.Context(), id, func(n *task.Task) error {
		return n.Assign(owner(), task.Attempt{Provider: "p", MemoryMB: n.Spec.MemoryBytes / sandbox.MiB})
	})
	return err
}

func waits(t *testing.T, l task.Ledger, id, why string) {
	t.Helper()
	_, err := l.Change(t.Context(), id, func(n *task.Task) error { return n.Wait(why) })
	require.NoError(t, err)
}

func TestNobodyOvertakesWhoWaitsForMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := task.Ledger{Store: task.FairStore(store.Memory(time.Now)), LimitMB: 300}
		budgeted(t, l, "t-small1", 100, 0)
		budgeted(t, l, "t-big", 300, time.Millisecond)
		budgeted(t, l, "t-small2", 100, 2*time.Millisecond)
		require.NoError(t, take(t, l, "t-small1"))
		require.ErrorIs(t, take(t, l, "t-big"), store.ErrBudget)
		waits(t, l, "t-big", "retry")
		waits(t, l, "t-big", "memory_budget")
		require.ErrorIs(t, take(t, l, "t-small2"), store.ErrBudget, "there is room, and somebody waits for longer")

		kept, err := l.Read(t.Context(), "t-small2")
		require.NoError(t, err)
		assert.Equal(t, task.Pending, kept.State, "nothing was written")

		// a task that waits for something else holds up no other
		waits(t, l, "t-big", "breaker: open")
		require.NoError(t, take(t, l, "t-small2"))
	})
}

func TestTheQueueForgetsWhoIsDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := task.Ledger{Store: task.FairStore(store.Memory(time.Now)), LimitMB: 300}
		budgeted(t, l, "t-big", 300, 0)
		waits(t, l, "t-big", "memory_budget")
		budgeted(t, l, "t-small", 100, time.Millisecond)
		require.ErrorIs(t, take(t, l, "t-small"), store.ErrBudget)
		time.Sleep(task.LeaseFor + time.Second) // virtual time: nobody renews the lease of the big task
		require.NoError(t, take(t, l, "t-small"))
	})
}

func TestOnlyTheSameBudgetQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := task.Ledger{Store: task.FairStore(store.Memory(time.Now)), LimitMB: 300}
		budgeted(t, l, "t-big", 300, 0)
		waits(t, l, "t-big", "memory_budget")
		spec := task.Spec{Provider: "p", Command: []string{"x"}, Attempts: 1, MemoryBytes: sandbox.MiB, Budget: "another"}
		_, _, err := l.Add(t.Context(), task.New("t-other", "", spec, owner(), time.Now().Add(time.Hour)))
		require.NoError(t, err)
		require.NoError(t, take(t, l, "t-other"))
	})
}

func TestWorkIsWhatIsDoneAndNotHow(t *testing.T) {
	t.Parallel()
	base := func() task.Spec {
		return task.Spec{Command: []string{"make"}, Workdir: "/src", EnvNames: []string{"A"}}
	}
	same := map[string]func(*task.Spec){
		"provider": func(s *task.Spec) { s.Provider = "other" },
		"memory":   func(s *task.Spec) { s.MemoryBytes = 1 },
		"attempts": func(s *task.Spec) { s.Attempts = 9 },
		"limits":   func(s *task.Spec) { s.Limits.Deadline = time.Hour },
		"labels":   func(s *task.Spec) { s.Labels = map[string]string{"a": "b"} },
		"budget":   func(s *task.Spec) { s.Budget = "host/x" },
	}
	other := map[string]func(*task.Spec){
		"command":  func(s *task.Spec) { s.Command = []string{"make", "test"} },
		"name":     func(s *task.Spec) { s.Name = "n" },
		"workdir":  func(s *task.Spec) { s.Workdir = "/" },
		"env":      func(s *task.Spec) { s.EnvNames = []string{"B"} },
		"template": func(s *task.Spec) { s.Template = "t" },
		"push":     func(s *task.Spec) { s.Push = "o=b" },
	}
	for name, change := range same {
		s := base()
		change(&s)
		assert.Equal(t, base().Work(), s.Work(), name)
	}
	for name, change := range other {
		s := base()
		change(&s)
		assert.NotEqual(t, base().Work(), s.Work(), name)
	}
}

// TestTwoThatNeedMoreDoNotWaitForEachOther: after an OOM a task reserves nothing while it
// waits for more.
func TestTwoThatNeedMoreDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		spec := plain()
		spec.MemoryBytes = limitMB / 2 * sandbox.MiB
		grows := []program{works(5*time.Second, sandbox.ClassOOM), works(5*time.Second, sandbox.ClassOK)}
		_, one := s.begin("t-1", spec, grows...)
		_, two := s.begin("t-2", spec, grows...)
		require.NoError(t, <-one)
		require.NoError(t, <-two)
		for _, id := range []string{"t-1", "t-2"} {
			now := s.now(t, id)
			assert.Equal(t, task.Completed, now.State, now.Refused)
			assert.EqualValues(t, limitMB, now.Last().MemoryMB)
		}
		assert.Less(t, time.Since(s.Began), 2*time.Minute, "not by its deadline")
	})
}
