package commands

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/testkit/fake"
)

// leasedBench has the sandbox aaaa, old and idle, which was made for a task, and the task t-work.
func leasedBench(t *testing.T, made string) (*bench, task.Ledger) {
	t.Helper()
	one := running("aaaa", 3*time.Hour)
	one.Sandbox.TaskID, one.Sandbox.Activity = made, sandbox.False
	b, _ := oneFake(one)
	b.configureNothing(t)
	ledger := task.Ledger{Store: b.kept(atNoon)}
	work := task.New("t-work", "", task.Spec{Provider: "prod", Command: []string{"true"}, Attempts: 1}, task.Owner{Host: "elsewhere", PID: 7, Who: "ann"}, noon)
	_, _, err := ledger.Add(t.Context(), work)
	require.NoError(t, err)
	return b, ledger
}

// TestWhatATaskIsAtWorkInStays, also where it was made for another task.
func TestWhatATaskIsAtWorkInStays(t *testing.T) {
	t.Parallel()
	for line, made := range map[string]string{"cleanup --older-than 1h --unowned": "t-work", "terminate prod/aaaa": "t-work", "cleanup --unowned --older-than 1h": "t-first"} {
		b, ledger := leasedBench(t, made)
		_, err := ledger.Change(t.Context(), "t-work", func(n *task.Task) error {
			if made == n.ID {
				return nil
			}
			return n.Assign(n.Owner, task.Attempt{Provider: "prod", Sandbox: "aaaa", Reused: true})
		})
		require.NoError(t, err)
		r := b.run(t, line+" -o json")
		assert.Contains(t, r.stdout, "task t-work is at work in it", line)
		assert.NotContains(t, r.stdout, `"verified"`+`: 1`, line)
		assert.Equal(t, "running", b.run(t, "inspect prod/aaaa -o json").item(t)["state"], line)
	}
}

func TestWhatADeadTaskLeftMayGo(t *testing.T) {
	t.Parallel()
	b, ledger := leasedBench(t, "t-work")
	_, err := ledger.Change(t.Context(), "t-work", func(n *task.Task) error { n.LeaseUntil = noon.Add(-time.Minute); return nil })
	require.NoError(t, err)
	r := b.run(t, "cleanup --older-than 1h --unowned --yes --max-delete 9 -o json")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Equal(t, "terminated", b.run(t, "inspect prod/aaaa -o json").item(t)["state"])
}

func TestWhatATaskKeptStaysUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	for until, want := range map[time.Duration]string{time.Minute: "running", -time.Minute: "terminated"} {
		one := running("aaaa", 3*time.Hour)
		one.Sandbox.Activity = sandbox.False
		b, _ := oneFake(one)
		b.configureNothing(t)
		list := task.KeepList{Store: b.kept(atNoon)}
		require.NoError(t, list.Keep(t.Context(), task.Kept{Ref: sandbox.Ref{Provider: "prod", ID: "aaaa"}, ExpiresAt: noon.Add(until)}, "t-1"))
		b.run(t, "cleanup --older-than 1h --unowned --yes --max-delete 9")
		assert.Equal(t, want, b.run(t, "inspect prod/aaaa -o json").item(t)["state"], until)
		b.run(t, "terminate prod/aaaa")
		assert.Equal(t, "terminated", b.run(t, "inspect prod/aaaa -o json").item(t)["state"], "by name it may go")
	}
}

func TestLeasesThatCannotBeReadProtectWhatTasksMade(t *testing.T) {
	t.Parallel()
	b, _ := leasedBench(t, "t-work")
	b.adjust = func(d *Deps) {
		d.Store = func(bool) (store.Store, error) { return nil, errors.New("the disk is gone") }
	}
	r := b.run(t, "cleanup --older-than 1h --unowned -o json")
	assert.Contains(t, r.stdout, "could not be read")
}

// TestAStoreThatCannotBeReadIsNoSuccess: what an SDK has written into its metadata is no
// task of the store's, and a run that could not ask for leases is told as such.
func TestAStoreThatCannotBeReadIsNoSuccess(t *testing.T) {
	t.Parallel()
	theirs := running("aaaa", 3*time.Hour)
	theirs.Sandbox.Activity, theirs.Sandbox.TaskID, theirs.Sandbox.Labels = sandbox.False, "", map[string]string{"task_id": "T-4711"}
	b, p := oneFake(theirs)
	b.configureNothing(t)
	b.adjust = func(d *Deps) {
		d.Store = func(bool) (store.Store, error) { return nil, errors.New("the disk is gone") }
	}
	r := b.run(t, "cleanup --older-than 1h --unowned --yes --max-delete 9 --max-fraction 100% -o json")
	assert.Equal(t, 3, r.code)
	assert.Contains(t, r.stdout, "the sandboxes of active tasks could not be read")
	assert.Len(t, p.Calls(fake.OpTerminate), 1)
	assert.NotEqual(t, 0, b.run(t, "cleanup status").code)
}
