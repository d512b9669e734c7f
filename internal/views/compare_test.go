package views_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/ops/launch"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/views"
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// endedAt is an outcome at a provider.
func endedAt(name string, code int, class sandbox.Class, took time.Duration, limitMB int64) launch.BatchOutcome {
	state := task.Failed
	if class == sandbox.ClassOK {
		state = task.Completed
	}
	return launch.BatchOutcome{BatchJob: launch.BatchJob{Label: name}, Task: task.Task{ID: "t-" + name, State: state, Attempts: []task.Attempt{{
		N: 1, Provider: name, MemoryMB: limitMB, StartedAt: noon(), EndedAt: noon().Add(took), Exit: &task.Exit{Code: &code, Class: class},
	}}}}
}

func TestDifferenceIsSaidInOneSentence(t *testing.T) {
	t.Parallel()
	ok := func(name string, took time.Duration) launch.BatchOutcome {
		return endedAt(name, 0, sandbox.ClassOK, took, 0)
	}
	for _, tc := range []struct {
		name string
		all  []launch.BatchOutcome
		want string
	}{
		{"the same", []launch.BatchOutcome{ok("a", time.Second), ok("b", 1400*time.Millisecond)}, "it completed at all 2, and none was much slower"},
		{"slow", []launch.BatchOutcome{ok("a", time.Second), ok("b", 9*time.Second)}, "it completed at all 2; b took 9s, a 1s"},
		{"fails everywhere", []launch.BatchOutcome{endedAt("a", 3, sandbox.ClassAgentError, 1, 0), endedAt("b", 3, sandbox.ClassAgentError, 1, 0)}, "it is not the provider: agent_error (exit 3) at all 2"},
		{
			"one kills it",
			[]launch.BatchOutcome{endedAt("a", 137, sandbox.ClassOOM, 1, 512), ok("b", 1), ok("c", 1)},
			"the provider makes a difference: oom (exit 137) at a, completed at b and c",
		},
		{
			"one gives less memory",
			[]launch.BatchOutcome{endedAt("a", 137, sandbox.ClassOOM, 1, 512), endedAt("b", 0, sandbox.ClassOK, 1, 1024)},
			"the provider makes a difference: oom (exit 137) at a, completed at b; their memory limits differ: a 512 MB, b 1024 MB",
		},
		{"nothing was launched", nil, "no comparison: it did not finish at every provider"},
		{"one was not launched", []launch.BatchOutcome{ok("a", 1)}, "no comparison: it did not finish at every provider"},
		{"not over", []launch.BatchOutcome{ok("a", 1), {BatchJob: launch.BatchJob{Label: "b"}}}, "no comparison: it did not finish at every provider"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, views.CompareDifference(tc.all, max(len(tc.all), 2)))
		})
	}
}
