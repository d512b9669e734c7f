package commands

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers/fake"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

func TestCompareRunsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBatchBench(t, "local", "one")
		b.fakes["local"].Break(fake.Fault{Op: fake.OpCreate, Delay: 2 * time.Second})
		r := b.runArgs(t, "run", "--compare", "local,one", "-o", "json", "--", "sh", "-c", "sleep 3; echo hi; sleep 1")
		require.Zero(t, r.code, r.stderr)
		items := r.list(t, "items")
		require.Len(t, items, 2)
		for i, want := range []string{"local", "one"} {
			assert.Equal(t, want, items[i]["compared"], "in the order of --compare")
			assert.Equal(t, want, items[i]["provider"])
			assert.Equal(t, "completed", items[i]["state"])
			assert.Equal(t, "ok", items[i]["class"])
			assert.EqualValues(t, 0, items[i]["exit_code"])
			assert.InDelta(t, 3, items[i]["first_output_seconds"], 0.2)
			assert.InDelta(t, 4, items[i]["duration_seconds"], 0.6)
			assert.NotNil(t, items[i]["attempts"], "what every item of run has")
		}
		assert.InDelta(t, 2, items[0]["create_seconds"], 0.1)
		assert.InDelta(t, 0, items[1]["create_seconds"], 0.1)
		assert.Equal(t, "it completed at all 2, and none was much slower", r.object(t)["difference"])
		assert.Contains(t, r.stderr, "local | hi")

		// what fails is not tried again: the difference is what is looked for
		b.fakes["local"].Mend()
		b.fakes["local"].Break(fake.Fault{Op: fake.OpCreate, Err: fault.New(fault.KindAuth, "no")})
		r = b.run(t, "run --compare one,local -- true")
		assert.Equal(t, fault.KindPartial.Row().Code, r.code)
		assert.Contains(t, r.stdout, "completed")
		assert.Contains(t, r.stderr, "the provider makes a difference: completed at one, ")
		r = b.run(t, "run --compare one,nowhere -- true")
		assert.Equal(t, fault.KindUsage.Row().Code, r.code)
	})
}

// endedAt is an outcome at a provider.
func endedAt(name string, code int, class sandbox.Class, took time.Duration, limitMB int64) outcome {
	state := task.Failed
	if class == sandbox.ClassOK {
		state = task.Completed
	}
	return outcome{job: job{label: name}, task: task.Task{ID: "t-" + name, State: state, Attempts: []task.Attempt{{
		N: 1, Provider: name, MemoryMB: limitMB, StartedAt: noon, EndedAt: noon.Add(took), Exit: &task.Exit{Code: &code, Class: class},
	}}}}
}

func TestDifferenceIsSaidInOneSentence(t *testing.T) {
	t.Parallel()
	ok := func(name string, took time.Duration) outcome { return endedAt(name, 0, sandbox.ClassOK, took, 0) }
	for _, tc := range []struct {
		name string
		all  []outcome
		want string
	}{
		{"the same", []outcome{ok("a", time.Second), ok("b", 1400*time.Millisecond)}, "it completed at all 2, and none was much slower"},
		{"slow", []outcome{ok("a", time.Second), ok("b", 9*time.Second)}, "it completed at all 2; b took 9.0s, a 1.0s"},
		{"fails everywhere", []outcome{endedAt("a", 3, sandbox.ClassAgentError, 1, 0), endedAt("b", 3, sandbox.ClassAgentError, 1, 0)}, "it is not the provider: agent_error (exit 3) at all 2"},
		{
			"one kills it",
			[]outcome{endedAt("a", 137, sandbox.ClassOOM, 1, 512), ok("b", 1), ok("c", 1)},
			"the provider makes a difference: oom (exit 137) at a, completed at b and c",
		},
		{
			"one gives less memory",
			[]outcome{endedAt("a", 137, sandbox.ClassOOM, 1, 512), endedAt("b", 0, sandbox.ClassOK, 1, 1024)},
			"the provider makes a difference: oom (exit 137) at a, completed at b; their memory limits differ: a 512 MB, b 1024 MB",
		},
		{"nothing was launched", nil, "nothing can be said: it did not come to its end everywhere"},
		{"one was not launched", []outcome{ok("a", 1)}, "nothing can be said: it did not come to its end everywhere"},
		{"not over", []outcome{ok("a", 1), {job: job{label: "b"}}}, "nothing can be said: it did not come to its end everywhere"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, difference(tc.all, max(len(tc.all), 2)))
		})
	}
}
