//go:build unix

package faults_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/config"
	"sbx/internal/ops"
	"sbx/internal/ops/launch"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/testkit/schedule"
	"sbx/internal/testkit/wiretest"
)

// taskSeeds is how many tasks at each provider a test run plays: each runs real programs.
const taskSeeds = 8

// TestNoLieStartsAProgramAgain runs tasks in worlds in which one source lies: a program starts at most `--attempts`
// times, and "verified gone" is said where nothing of the task runs.
//
//	SBX_SEEDS=500 go test -count=1 -timeout 60m -run '^TestNoLieStartsAProgramAgain$' ./internal/faults
func TestNoLieStartsAProgramAgain(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"e2b", "daytona", "vercel"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := 0
			schedule.Worlds(t, nil, taskSeeds, 1, func(t *testing.T, seed uint64) { t.Helper(); all += playTask(t, clouds()[name], seed) })
			assert.Positive(t, all, "no program was started")
		})
	}
}

// playTask runs one task and returns how often its program was started.
func playTask(t *testing.T, on func(wiretest.T) *cloud, seed uint64) int {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 48))
	w := newWorld(t, on(t))
	attempts := 1 + r.IntN(2)
	l := newTaskLie(r, w.c)
	w.trace = append(w.trace, l.String())
	w.c.server.Break(l.faults...)
	started, before, others := filepath.Join(w.dir, "started"), w.c.count(), w.living()
	got, err := w.launch(t.Context(), attempts, "echo start >> "+started+"; exit "+strconv.Itoa(r.IntN(2)))
	if err == nil {
		w.trace = append(w.trace, string(got.Task.State)+" "+got.Task.Refused)
	} else {
		w.trace = append(w.trace, err.Error())
	}
	text, _ := os.ReadFile(started) // none = it never started
	starts := strings.Count(string(text), "start")
	assert.LessOrEqual(t, starts, attempts, "it was started too often%s", w.story())
	if err == nil && got.Task.State.Final() && got.Task.AllGone() {
		assert.Equal(t, before, w.c.count(), "its sandboxes are said to be gone, and one runs%s", w.story())
	}
	for id := range others {
		assert.True(t, w.c.runs(id), "a sandbox of somebody else has ended: %s", id)
	}
	time.Sleep(time.Minute) // in virtual time: what the fake stops has ended
	return starts
}

// newTaskLie is a lie about a sandbox that does not exist yet.
func newTaskLie(r *rand.Rand, c *cloud) lie {
	for {
		l := newLie(r, c, []string{c.other})
		if l.from == sourceClock || l.ignored || strings.HasPrefix(l.name, "row") {
			continue
		}
		l.about = ""
		after, create := r.IntN(6), r.IntN(4) == 0
		for i := range l.faults {
			l.faults[i].Contains, l.faults[i].After, l.faults[i].Other = "", after, ""
		}
		if create {
			one := wiretest.Fault{Route: c.create, Times: 1, Late: true, Status: 502, Body: `{}`}
			if l.name = "create: done, status 502"; r.IntN(2) == 0 {
				l.name, one = "create: twice", wiretest.Fault{Route: c.create, Times: 1, Twice: true}
			}
			l.from, l.times, l.faults = sourceAnswer, 1, []wiretest.Fault{one}
		}
		return l
	}
}

// launch runs a task to its end.
func (w *world) launch(ctx context.Context, attempts int, script string) (*launch.Launched, error) {
	env := w.process()
	plain := env.Tasks
	env.Tasks = func(ctx context.Context, parts ops.TaskParts) (task.Options, error) {
		o, err := plain(ctx, parts)
		o.DeleteOnEnd = func(string) bool { return true }
		return o, err
	}
	in := env.Input()
	in.Flags = map[string]string{"attempts": strconv.Itoa(attempts), "provider": "prod"}
	c, err := config.Load(ctx, in)
	if err != nil {
		return nil, err
	}
	return launch.Launch(ctx, env, launch.Request{
		Config: c, Sandbox: sandbox.Spec{Command: []string{"sh", "-c", script}},
	}, noObserver{}, noTask{})
}

// noTask shows nothing.
type noTask struct{}

func (noTask) Changed(task.Task)      {}
func (noTask) Message(string)         {}
func (noTask) Output(sandbox.LogLine) {}
func (noTask) Close()                 {}
