package task

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// TestHistory: what is known of a sandbox's tasks.
func TestHistory(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	st := store.Memory(func() time.Time { return now })
	l := Ledger{Store: st}
	keep := func(id string, state State, from string, attempts ...Attempt) {
		t.Helper()
		task := New(id, "", Spec{Provider: "prod", Command: []string{"true"}, Attempts: 3}, Owner{Host: "h", PID: 1, Who: "w"}, now)
		_, _, err := l.Add(t.Context(), task)
		require.NoError(t, err)
		_, err = l.Change(t.Context(), id, func(n *Task) error {
			n.State, n.ResumedFrom, n.Attempts = state, from, attempts
			return nil
		})
		require.NoError(t, err)
	}
	in := func(box string, change func(*Attempt)) Attempt {
		a := Attempt{Provider: "prod", Sandbox: box, IntentAt: now.Add(-time.Minute), StartedAt: now.Add(-50 * time.Second)}
		if change != nil {
			change(&a)
		}
		return a
	}
	ended := func(why Reason) func(*Attempt) {
		return func(a *Attempt) { a.EndedAt, a.Expired = now.Add(-time.Second), why }
	}
	keep("t-over", TimedOut, "", in("left", ended(ReasonCommand)), in("left", ended(ReasonAttempt)))
	keep("t-runs", Running, "", in("runs", nil))
	keep("t-settles", Running, "", in("settles", ended(ReasonNone)))
	keep("t-goeson", Running, "t-over", in("taken", func(a *Attempt) { a.Reused = true }))
	keep("t-refused", Failed, "",
		Attempt{Provider: "prod", IntentAt: now.Add(-time.Minute), Fault: string(fault.KindRefused)},
		Attempt{Provider: "prod", IntentAt: now.Add(-time.Minute), Fault: string(fault.KindUsage)},
		Attempt{Provider: "prod", IntentAt: now.Add(-2 * time.Hour), Fault: string(fault.KindUnavailable)},
	)

	h, err := ReadHistory(t.Context(), l, now)
	require.NoError(t, err)
	older := func(string) (Task, bool) { return Task{}, false }
	for name, tc := range map[string]struct {
		box, task string
		finished  sandbox.Verdict
		limits    *int
	}{
		"its task is over":                        {"left", "t-over", sandbox.True, new(2)},
		"its task runs":                           {"runs", "t-runs", sandbox.False, new(0)},
		"its program has ended, the task not":     {"settles", "t-settles", sandbox.True, new(0)},
		"another task goes on in it":              {"taken", "t-over", sandbox.False, new(2)},
		"found by the attempt, without any label": {"runs", "", sandbox.False, new(0)},
		"a task that is not known here":           {"x", "t-foreign", "", nil},
		"a task of somebody else's":               {"x", "T-4711", "", nil},
		"no task":                                 {"x", "", "", nil},
	} {
		got := h.Sandbox(sandbox.Sandbox{Provider: "prod", ID: tc.box, TaskID: tc.task}, older)
		assert.Equal(t, tc.finished, got.Finished, name)
		assert.Equal(t, tc.limits, got.TimeLimitsHit, name)
		assert.Equal(t, tc.finished == sandbox.True, got.FinishedBy.What != "", name)
	}
	asked := ""
	h.Sandbox(sandbox.Sandbox{Provider: "prod", ID: "x", TaskID: "t-foreign"}, func(id string) (Task, bool) { asked = id; return Task{}, false })
	assert.Equal(t, "t-foreign", asked, "an older one is read by itself")

	p := h.Profile("prod")
	assert.Equal(t, []*int64{new(int64(1)), new(int64(3)), new(int64(2))}, []*int64{p.CreateFailures, p.Attempts, p.TimedOut})
	assert.Equal(t, []*int64{new(int64(0)), nil, nil}, []*int64{p.Inactive, p.Stops, p.StopsFailed})
	assert.Equal(t, ProfileHistory{}, h.Profile("other"), "nothing was tried there")
	assert.Equal(t, fleet.SandboxHistory{}, h.Sandbox(sandbox.Sandbox{Provider: "other", ID: "runs"}, older), "an id of another profile")
}
