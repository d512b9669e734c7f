package commands

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// batchBench is a bench over fakes of these names, in virtual time, with a file of
// tasks. What runs at once is counted.
type batchBench struct {
	*bench
	fakes map[string]*fake.Provider

	mu   sync.Mutex
	made []string // commands, in the order of their creation
}

func newBatchBench(t *testing.T, names ...string) *batchBench {
	t.Helper()
	dir := t.TempDir()
	b := &batchBench{bench: newBench(), fakes: map[string]*fake.Provider{}}
	var config strings.Builder
	config.WriteString("providers:\n")
	for _, name := range names {
		p := fake.New(fake.Options{Name: name, Now: time.Now, Program: func(spec sandbox.Spec) (fake.Script, bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.made = append(b.made, strings.Join(spec.Command, " "))
			return fake.Script{}, false
		}})
		b.fakes[name], b.members = p, append(b.members, p)
		if name != "local" {
			config.WriteString("  " + name + ": {type: fake}\n")
		}
	}
	b.home, b.workdir, b.now = dir, dir, time.Now
	if len(names) > 1 {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, ".config", "sbx"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".config", "sbx", "config.yaml"), []byte(config.String()), 0o600))
	}
	return b
}

func (b *batchBench) write(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(b.workdir, "t.yaml"), []byte(text), 0o600))
}

// states are the states of the items, by the name of the task.
func states(t *testing.T, r result) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, item := range r.list(t, "items") {
		got[fmt.Sprint(item["key"])] = fmt.Sprint(item["state"])
	}
	return got
}

func TestBatchDoesEachTaskOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBatchBench(t, "local")
		b.write(t, "tasks:\n  - {key: a, command: [sleep, '3']}\n  - {key: b, shell: exit 4}\n  - {key: c, command: ['true']}\n")
		first := b.run(t, "run --file t.yaml --parallel 2 -o json")
		assert.Equal(t, fault.KindPartial.Row().Code, first.code, first.stderr)
		assert.Equal(t, map[string]string{"a": "completed", "b": "failed", "c": "completed"}, states(t, first))
		assert.EqualValues(t, 2, first.object(t)["completed"])
		assert.Len(t, b.made, 3)

		second := b.run(t, "run --file t.yaml -o json")
		assert.Equal(t, first.code, second.code)
		assert.Equal(t, states(t, first), states(t, second))
		assert.Len(t, b.made, 3, "nothing was launched")

		third := b.run(t, "run --file t.yaml --retry-failed -o json")
		assert.Equal(t, map[string]string{"a": "completed", "b~2": "failed", "c": "completed"}, states(t, third))
		assert.Len(t, b.made, 4)
		assert.Equal(t, map[string]string{"a": "completed", "b~2": "failed", "c": "completed"}, states(t, b.run(t, "run --file t.yaml -o json")))

		again := b.run(t, "run --file t.yaml --again -o json")
		assert.Equal(t, map[string]string{"a.2": "completed", "b.2": "failed", "c.2": "completed"}, states(t, again))
		assert.Len(t, b.made, 7)
		assert.Equal(t, states(t, again), states(t, b.run(t, "run --file t.yaml -o json")), "a later run goes on with the last round")
		assert.Len(t, b.made, 7)
	})
}

// TestATaskBeginsAfterThoseThatItNeeds: in their order as in the file where nothing is needed, and none
// begins beside what it needs, however many may run at once.
func TestATaskBeginsAfterThoseThatItNeeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBatchBench(t, "local")
		b.write(t, "tasks:\n  - {name: operate, command: [echo, e], needs: [test]}\n  - {name: analyse, command: [sleep, '3']}\n"+
			"  - {name: design, command: [echo, b], needs: analyse}\n  - {name: test, command: [echo, d], needs: [develop, design]}\n"+
			"  - {name: develop, command: [sleep, '2'], needs: [design]}\n  - {name: other, command: [echo, f]}\n")
		r := b.run(t, "run --file t.yaml --parallel 4")
		require.Zero(t, r.code, r.stderr)
		assert.Equal(t, []string{"echo b", "sleep 2", "echo d", "echo e"}, b.made[2:], b.made)
		assert.ElementsMatch(t, []string{"sleep 3", "echo f"}, b.made[:2])

		require.Zero(t, b.run(t, "run --file t.yaml").code)
		assert.Len(t, b.made, 6, "what was completed before is not done again")
	})
}

// TestWhatNeedsAFailedTaskIsNotStarted: each of them is told, with what it needs; the others run.
func TestWhatNeedsAFailedTaskIsNotStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBatchBench(t, "local")
		b.write(t, "tasks:\n  - {name: one, shell: exit 4}\n  - {name: two, command: [echo, b], needs: one}\n  - {name: three, command: [echo, c], needs: two}\n  - {name: four, command: [echo, d]}\n")
		r := b.run(t, "run --file t.yaml -o json")
		assert.Equal(t, fault.KindPartial.Row().Code, r.code, r.stderr)
		assert.ElementsMatch(t, []string{"sh -c exit 4", "echo d"}, b.made)
		assert.Regexp(t, "two: not started: it needs one, which failed", r.stdout)
		assert.Contains(t, r.stdout, "three: not started: it needs two, which was not started")
		assert.EqualValues(t, 1, r.object(t)["completed"])
		assert.EqualValues(t, 2, r.object(t)["not_launched"])

		people := b.run(t, "run --file t.yaml")
		assert.Contains(t, people.stderr, "4 tasks: 1 completed (1 of them earlier; --again launches them again), 1 did not, 2 not started, since a task that they need did not complete")
		assert.Len(t, b.made, 2)
	})
}

func TestBatchKnowsATaskByItsWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBatchBench(t, "local")
		b.write(t, "tasks:\n  - {shell: exit 0}\n  - {shell: exit 0}\n  - {command: [echo, x], memory: 64M}\n")
		require.Zero(t, b.run(t, "run --file t.yaml").code)
		require.Len(t, b.made, 3, "what is written twice is two tasks")
		// other limits, another order and one more: only that one is launched
		b.write(t, "defaults: {attempts: 5}\ntasks:\n  - {command: [echo, x], memory: 128M}\n  - {command: [echo, y]}\n  - {shell: exit 0}\n  - {shell: exit 0}\n")
		r := b.run(t, "run --file t.yaml --deadline 1h")
		require.Zero(t, r.code, r.stderr)
		assert.Equal(t, "echo y", b.made[3])
		assert.Len(t, b.made, 4)
		// a key that means something else by now
		b.write(t, "tasks:\n  - {key: k, command: [echo, x]}\n")
		require.Zero(t, b.run(t, "run --file t.yaml").code)
		b.write(t, "tasks:\n  - {key: k, command: [echo, z]}\n")
		r = b.run(t, "run --file t.yaml")
		assert.Equal(t, fault.KindUsage.Row().Code, r.code)
		assert.Contains(t, r.stderr, "has another command or other settings")
	})
}

func TestBatchGoesByFlagsBeforeItsFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBatchBench(t, "local", "one")
		b.write(t, "defaults: {provider: one, attempts: 2, env: {A: a, B: b}}\ntasks:\n  - {key: x, shell: exit 0}\n  - {key: y, provider: local, memory: 1G, attempts: 4, env: {B: c}, shell: exit 0}\n")
		ledger := task.Ledger{Store: b.kept(time.Now)}
		of := func(key string) task.Task {
			t.Helper()
			found, err := ops.FindTask(t.Context(), ledger, key)
			require.NoError(t, err)
			return found
		}
		require.Zero(t, b.run(t, "run --file t.yaml").code)
		assert.Equal(t, "one", of("x").Spec.Provider)
		assert.Equal(t, 2, of("x").Spec.Attempts)
		assert.Equal(t, "local", of("y").Spec.Provider)
		assert.Equal(t, 4, of("y").Spec.Attempts)
		assert.EqualValues(t, sandbox.MiB<<10, of("y").Spec.MemoryBytes)
		assert.Equal(t, []string{"A", "B"}, of("y").Spec.EnvNames)

		r := b.run(t, "run --file t.yaml --again --provider local --attempts 7 --memory 64M --env C=d")
		require.Zero(t, r.code, r.stderr)
		for _, key := range []string{"x.2", "y.2"} {
			s := of(key).Spec
			assert.Equal(t, "local", s.Provider)
			assert.Equal(t, 7, s.Attempts)
			assert.EqualValues(t, 64*sandbox.MiB, s.MemoryBytes)
			assert.Equal(t, []string{"A", "B", "C"}, s.EnvNames)
		}
	})
}

func TestBatchStopsAtTheFirstSignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBatchBench(t, "local")
		b.write(t, "tasks:\n  - {key: a, command: [sleep, '20']}\n  - {key: b, command: ['true']}\n  - {key: c, command: [sleep, '20']}\n  - {key: d, command: ['true']}\n")
		b.context = func(ctx context.Context) context.Context {
			ctx, stop := context.WithTimeoutCause(ctx, 10*time.Second, fault.New(fault.KindCanceled, "interrupted"))
			t.Cleanup(stop)
			return ctx
		}
		r := b.run(t, "run --file t.yaml --parallel 2 -o json")
		assert.NotZero(t, r.code)
		assert.Equal(t, map[string]string{"a": "stopped", "b": "completed", "c": "stopped"}, states(t, r))
		assert.EqualValues(t, 1, r.object(t)["not_launched"])
		for s, err := range b.fakes["local"].List(t.Context(), providers.Query{All: true}) {
			require.NoError(t, err)
			assert.True(t, s.State.Ended(), "%s is left", s.ID)
		}
		b.context = nil
		r = b.run(t, "run --file t.yaml -o json")
		assert.Zero(t, r.code, r.stderr)
		assert.Equal(t, map[string]string{"a~2": "completed", "b": "completed", "c~2": "completed", "d": "completed"}, states(t, r))
	})
}

func TestBatchExitsAsAllItsTasksDid(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, file string
		want       int
	}{
		{"all completed", "tasks: [{shell: exit 0}, {command: ['true']}]", 0},
		{"all with one code", "tasks: [{name: a, shell: exit 9}, {name: b, shell: exit 9}]", 9},
		{"all failed, with two codes", "tasks: [{name: a, shell: exit 9}, {name: b, shell: exit 8}]", 3},
		{"some", "tasks: [{shell: exit 0}, {shell: exit 9}]", 3},
		{"all timed out", "defaults: {attempts: 1, command_timeout: 1s}\ntasks: [{command: [sleep, '9']}]", 124},
	} {
		bubble.Run(t, tc.name, func(t *testing.T) {
			b := newBatchBench(t, "local")
			b.write(t, tc.file)
			r := b.run(t, "run --file t.yaml")
			assert.Equal(t, tc.want, r.code, r.stderr)
			assert.Equal(t, tc.want, b.run(t, "run --file t.yaml -o json").code, "of what was done before too")
		})
	}
}

func TestBatchRunsSoManyAtOnceInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBatchBench(t, "local")
		var file strings.Builder
		file.WriteString("tasks:\n")
		for i := range 12 {
			fmt.Fprintf(&file, "  - {name: n%d, command: [sleep, '10']}\n", i)
		}
		b.write(t, file.String())
		began := time.Now()
		r := b.run(t, "run --file t.yaml --parallel 4 -o json")
		require.Zero(t, r.code, r.stderr)
		took := time.Since(began)
		assert.GreaterOrEqual(t, took, 30*time.Second, "never more than four")
		assert.Less(t, took, 35*time.Second, "always four")
	})
}
