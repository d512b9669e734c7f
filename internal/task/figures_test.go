package task

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

// ranFor is an attempt whose program began at noon and ended after the seconds in a class,
// and whose sandbox was gone a second later.
func ranFor(class sandbox.Class, seconds int) Attempt {
	end := noon().Add(time.Duration(seconds) * time.Second)
	return Attempt{
		N: 1, Provider: "p", Sandbox: "s", IntentAt: noon(), StartedAt: noon(), EndedAt: end, GoneAt: end.Add(time.Second),
		Exit: &Exit{Class: class},
	}
}

func (a Attempt) with(do func(*Attempt)) Attempt {
	do(&a)
	return a
}

// taskThat is a task in a final state, with its attempts in sequence.
func taskThat(state State, attempts ...Attempt) Task {
	t := Task{ID: "t-" + string(state), State: state, Verdict: state}
	shift := time.Duration(0)
	for i, a := range attempts {
		a.N = i + 1
		for _, at := range []*time.Time{&a.IntentAt, &a.StartedAt, &a.OutputAt, &a.EndedAt, &a.GoneAt} {
			if !at.IsZero() {
				*at = at.Add(shift)
			}
		}
		shift += time.Hour
		t.Attempts = append(t.Attempts, a)
	}
	return t
}

func (t Task) but(do func(*Task)) Task {
	do(&t)
	return t
}

func figureOf(t *testing.T, id string, tasks ...Task) Figure {
	t.Helper()
	for _, f := range Figures(tasks, noon().Add(3*time.Hour)) {
		if f.ID == id {
			return f
		}
	}
	require.Fail(t, "no figure "+id)
	return Figure{}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	const met, missed, unknown = sandbox.True, sandbox.False, sandbox.Unknown
	ok, crash, kill := ranFor(sandbox.ClassOK, 10), ranFor(sandbox.ClassCrash, 10), ranFor(sandbox.ClassKilledUnknown, 36).with(func(a *Attempt) { n := 2; a.Messages = &n })
	silent := func(extended bool) Attempt {
		return ranFor(sandbox.ClassTimeout, 70).with(func(a *Attempt) {
			a.Expired, a.OutputAt, a.Extended = ReasonInactivity, noon().Add(10*time.Second), extended
		})
	}
	stopped := func(after, gone time.Duration) Task {
		return taskThat(Stopped, ok).but(func(n *Task) {
			n.StopAt, n.StopBy, n.Spec.Push = noon().Add(after), "ann", "r=b"
			n.Attempts[0].GoneAt = noon().Add(after + gone)
		})
	}
	hangs := func(since time.Duration) Task {
		return stopped(3*time.Hour-since, 0).but(func(n *Task) { n.State, n.Attempts[0].GoneAt = Running, time.Time{} })
	}
	kept := ranFor(sandbox.ClassGone, 1).with(func(a *Attempt) { a.Reused, a.StartedAt = true, time.Time{} })
	resumed := taskThat(Completed, ok.with(func(a *Attempt) { a.Reused = true })).but(func(n *Task) { n.Resumed, n.Spec.Sandbox.ID = true, "k" })
	recreated := taskThat(Completed, kept, ok).but(func(n *Task) { n.Recreated, n.Spec.Sandbox.ID = true, "k" })
	none := -1.0
	for _, c := range []struct {
		name, id string
		tasks    []Task
		value    float64
		samples  int
		verdict  sandbox.Verdict
	}{
		{"nothing", "completed_without_sigkill", nil, none, 0, unknown},
		{"stopped ones do not count", "completed_without_sigkill", []Task{stopped(time.Second, time.Second)}, none, 0, unknown},
		{"a kill that was retried", "completed_without_sigkill", []Task{taskThat(Completed, ok), taskThat(Completed, kill, ok), taskThat(Failed, crash), taskThat(Completed, crash, ok)}, 0.5, 4, unknown},
		{"retries", "retries_completed", []Task{taskThat(Completed, ok), taskThat(Completed, kill, ok), taskThat(Failed, crash, crash)}, 0.5, 2, unknown},
		{"made anew is no retry", "retries_completed", []Task{recreated}, none, 0, unknown},
		{"half of the kills", "time_to_sigkill_p50", []Task{taskThat(Completed, kill, ranFor(sandbox.ClassOOM, 5), ranFor(sandbox.ClassOOM, 90), ranFor(sandbox.ClassTimeout, 7))}, 36, 3, unknown},
		{"all kills but the rarest", "time_to_sigkill_p95", []Task{taskThat(Completed, kill, ranFor(sandbox.ClassOOM, 5), ranFor(sandbox.ClassOOM, 90))}, 90, 3, unknown},
		{"messages", "messages_before_sigkill_p50", []Task{taskThat(Failed, kill, ranFor(sandbox.ClassOOM, 5))}, 2, 1, unknown},

		{"all ended", "ends_verified", []Task{stopped(time.Second, 2*time.Second), taskThat(TimedOut, silent(false))}, 1, 2, met},
		{"one hangs", "ends_verified", []Task{stopped(time.Second, 2*time.Second), hangs(time.Minute)}, 0.5, 2, missed},
		{"one is being ended", "ends_verified", []Task{stopped(time.Second, 2*time.Second), hangs(10 * time.Second)}, 1, 1, met},
		{"stops alone", "stops_verified", []Task{stopped(time.Second, 2*time.Second), taskThat(TimedOut, silent(false))}, 1, 1, met},
		{"limits alone", "limits_verified", []Task{stopped(time.Second, 2*time.Second), taskThat(TimedOut, silent(false))}, 1, 1, met},
		{"a quick stop", "stop_time_p99", []Task{stopped(time.Second, 2*time.Second)}, 2, 1, met},
		{"the slowest stop", "stop_time_p99", []Task{stopped(time.Second, 2*time.Second), stopped(time.Second, 5*time.Second)}, 5, 2, missed},
		{"a stop that goes on", "stop_time_p99", []Task{stopped(time.Second, 2*time.Second), hangs(10 * time.Second)}, 10, 2, missed},
		{"a stop of nothing", "stop_time_p99", []Task{taskThat(Stopped).but(func(n *Task) { n.StopAt, n.StopBy = noon(), "ann" })}, 0, 1, met},
		{"a limit's end", "end_time_p99", []Task{taskThat(TimedOut, silent(false))}, 1, 1, met},
		{"nothing pushed", "stopped_not_published", []Task{stopped(time.Second, time.Second), taskThat(Completed, ok)}, 1, 1, met},
		{"pushed after a stop", "stopped_not_published", []Task{stopped(time.Second, time.Second).but(func(n *Task) { n.Publish.State = PublishDone }), stopped(time.Second, time.Second)}, 0.5, 2, missed},
		{"nothing to push", "stopped_not_published", []Task{stopped(time.Second, time.Second).but(func(n *Task) { n.Spec.Push = "" })}, none, 0, unknown},
		{"asked for", "stopped_unasked", []Task{stopped(time.Second, time.Second)}, 0, 1, met},
		{"nobody asked", "stopped_unasked", []Task{stopped(time.Second, time.Second), taskThat(Failed, ranFor(sandbox.ClassStopped, 3))}, 0.5, 2, missed},
		{"stops that fail", "stop_failures_high", []Task{hangs(time.Minute), stopped(time.Second, time.Second)}, 0.5, 2, missed},

		{"health", "kept_unanswered", []Task{resumed, recreated, taskThat(Completed, ok)}, 0.5, 2, unknown},
		{"made anew", "expired_recreated", []Task{recreated}, 1, 1, met},
		{"not made anew", "expired_recreated", []Task{recreated, recreated.but(func(n *Task) { n.State, n.Attempts = Failed, n.Attempts[:1] })}, 0.5, 2, missed},
		{"gone on", "sessions_resumed", []Task{resumed}, 1, 1, met},
		{"broken on the way", "sessions_resumed", []Task{resumed, taskThat(Failed, kept).but(func(n *Task) { n.Resumed = true })}, 0.5, 2, missed},
		{"used once", "ended_not_reused", []Task{recreated}, 1, 1, met},
		{"used again", "ended_not_reused", []Task{recreated, taskThat(Failed, kept, kept).but(func(n *Task) { n.Recreated = true })}, 0.5, 2, missed},

		{"silence is rare", "ended_inactive", append(times(24, taskThat(Completed, ok)), taskThat(TimedOut, silent(false))), 0.04, 25, met},
		{"silence at the bound", "ended_inactive", append(times(19, taskThat(Completed, ok)), taskThat(TimedOut, silent(false))), 0.05, 20, missed},
		{"silence alarms", "inactivity_high", []Task{taskThat(Completed, ok), taskThat(TimedOut, silent(false))}, 0.5, 2, missed},
		{"still ones", "killed_active", []Task{taskThat(TimedOut, silent(false)), taskThat(Completed, ok.with(func(a *Attempt) { a.Extended = true }))}, 0, 2, met},
		{"worked in silence", "killed_active", []Task{taskThat(TimedOut, silent(true)), taskThat(TimedOut, silent(false))}, 0.5, 2, missed},
		{"seen in time", "silence_to_end_p99", []Task{taskThat(TimedOut, silent(false))}, 60, 1, met},
		{"seen late", "silence_to_end_p99", []Task{taskThat(TimedOut, silent(false).with(func(a *Attempt) { a.OutputAt = time.Time{} }))}, 70, 1, missed},

		{"no push after a limit", "limited_not_published", []Task{taskThat(TimedOut, silent(false)).but(func(n *Task) { n.Spec.Push = "r=b" })}, 1, 1, met},
		{"pushed after a limit", "limited_not_published", []Task{taskThat(TimedOut, silent(false)).but(func(n *Task) { n.Spec.Push, n.Publish.State = "r=b", PublishDone })}, 0, 1, missed},
		{"no incident", "race_incidents", []Task{taskThat(Completed, crash, ok), resumed, hangs(time.Minute)}, 0, 3, met},
		{"incidents", "race_incidents", []Task{
			stopped(time.Second, time.Second).but(func(n *Task) { n.Publish.State = PublishDone }),
			taskThat(Failed, ok).but(func(n *Task) { n.Attempts[0].GoneAt = time.Time{} }),
			taskThat(Completed, crash, ok).but(func(n *Task) { n.Attempts[0].GoneAt = noon().Add(2 * time.Hour) }),
		}, 3, 3, missed},
	} {
		t.Run(c.id+" "+c.name, func(t *testing.T) {
			t.Parallel()
			f := figureOf(t, c.id, c.tasks...)
			got := none
			if f.Value != nil {
				got = *f.Value
			}
			assert.InDelta(t, c.value, got, 1e-9)
			assert.Equal(t, c.samples, f.Samples)
			assert.Equal(t, c.verdict, f.Verdict())
		})
	}
}

func times(n int, t Task) []Task {
	list := make([]Task, n)
	for i := range list {
		list[i] = t
	}
	return list
}

func TestEveryFigureIsThereWithoutATask(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range Figures(nil, noon()) {
		assert.False(t, seen[f.ID], f.ID)
		seen[f.ID] = true
		assert.Nil(t, f.Value, f.ID)
		assert.Equal(t, sandbox.Unknown, f.Verdict(), f.ID)
		assert.NotEmpty(t, f.Title+f.Group, f.ID)
	}
	assert.Len(t, seen, 23)
}

func TestCauses(t *testing.T) {
	t.Parallel()
	oom := ranFor(sandbox.ClassOOM, 3).with(func(a *Attempt) { a.Exit.Cause = sandbox.CauseOOM })
	crash := ranFor(sandbox.ClassCrash, 3)
	stopped := taskThat(Stopped, crash).but(func(n *Task) { n.StopAt = noon() })
	got := CountFailures([]Task{taskThat(Failed, crash), taskThat(Completed, oom, oom, ranFor(sandbox.ClassOK, 1)), stopped})
	require.Len(t, got, 2)
	assert.Equal(t, []any{sandbox.ClassOOM, sandbox.CauseOOM, 2, "t-completed"}, []any{got[0].Class, got[0].Cause, got[0].Attempts, got[0].Latest})
	assert.Equal(t, []any{sandbox.ClassCrash, 1, "t-failed"}, []any{got[1].Class, got[1].Attempts, got[1].Latest})
}
