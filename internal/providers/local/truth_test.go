//go:build unix

package local_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

// TestARecordAloneProvesNoEnd: a record that says terminated while its supervisor
// holds the lock is a lie, and an end goes on until the supervisor is gone.
func TestARecordAloneProvesNoEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: []string{"sleep", "600"}})
	r := b.record(t, s.ID)
	r.State, r.EndedAt = sandbox.StateTerminated, time.Now()
	require.NoError(t, b.store().Write(r))
	got, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateTerminating, got.State)
	assert.Contains(t, got.RawState, "its supervisor runs")
	assert.Nil(t, got.Exit)

	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "test"}))
	got, err = b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateTerminated, got.State)
	nothingLeft(t, s.ID)
	err = b.Terminate(t.Context(), s.ID, providers.TerminateOptions{})
	assert.Equal(t, fault.KindGone, fault.KindOf(err), "%v", err)
}

// TestAClockThatLeapsMakesNothingOlder: ages and silence are counted by the machine's
// own clock.
func TestAClockThatLeapsMakesNothingOlder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: []string{"sleep", "600"}})
	for _, leap := range []time.Duration{time.Hour, -time.Hour} {
		moved := b.at(t, func() time.Time { return time.Now().Add(leap) })
		got, err := moved.Get(t.Context(), s.ID)
		require.NoError(t, err)
		now := time.Now().Add(leap)
		age, source := got.Age(now)
		assert.Equal(t, sandbox.AgeCreatedAt, source, "leap %s", leap)
		assert.Less(t, age, time.Minute, "leap %s", leap)
		idle, known := got.Idle(now)
		assert.True(t, known, "leap %s", leap)
		assert.Less(t, idle, time.Minute, "leap %s", leap)
		again, err := moved.Get(t.Context(), s.ID)
		require.NoError(t, err)
		assert.Equal(t, got.CreatedAt, again.CreatedAt, "two reads show one sandbox")
	}
}

// TestAnEndThatOnlyMarksProveIsUnknown: without a namespace and a control group, a
// process that forked away and cleaned its environment would not be seen.
func TestAnEndThatOnlyMarksProveIsUnknown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		isolation string
		proof     bool
		state     sandbox.State
		says      string
	}{
		"killed with its stub":        {"none", false, sandbox.StateUnknown, "unknown: its supervisor and its stub were killed"},
		"its stub outlived it":        {"none", true, sandbox.StateFailed, "its stub ended all remaining processes"},
		"its namespace ended with it": {"pid+mount namespaces", false, sandbox.StateFailed, "its namespace ended"},
		"written by a version before": {"", false, sandbox.StateUnknown, "unknown: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			lost := b.record(t, b.ended(t, b.sh(t, "true").ID).ID)
			lost.ID, lost.State, lost.Exit, lost.EndedAt = "lost0000"+strings.ToLower(name[:1]), sandbox.StateRunning, nil, time.Time{}
			lost.Cgroup, lost.Limits.Isolation = json.RawMessage(nil), tc.isolation
			lock, err := b.store().Prepare(lost.ID)
			require.NoError(t, err)
			require.NoError(t, b.store().Write(lost))
			if tc.proof {
				require.NoError(t, os.WriteFile(b.store().Proof(lost.ID), []byte("done"), 0o600))
			}
			require.NoError(t, lock.Close())
			require.Eventually(t, func() bool { // a child of another test holds it between fork and exec
				held, err := b.store().Held(lost.ID)
				return err == nil && !held
			}, tiertest.Limit(t), time.Millisecond)
			_, err = b.Sweep(t.Context())
			require.NoError(t, err)
			got, err := b.Get(t.Context(), lost.ID)
			require.NoError(t, err)
			assert.Equal(t, tc.state, got.State, got.RawState)
			require.NotNil(t, got.Exit)
			var tree string
			for _, e := range got.Exit.Evidence {
				if e.What == "tree" {
					tree = e.Value
				}
			}
			assert.Contains(t, tree, tc.says)
			if tc.state == sandbox.StateUnknown {
				require.NoError(t, b.Terminate(t.Context(), lost.ID, providers.TerminateOptions{}), "asked, and not proved")
				again, err := b.Get(t.Context(), lost.ID)
				require.NoError(t, err)
				assert.Equal(t, sandbox.StateUnknown, again.State)
			}
		})
	}
}

// TestACommandLineThatNoRecordHoldsIsRefused: its program would run with an unreadable record.
func TestACommandLineThatNoRecordHoldsIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	long := []string{"true"}
	for range 30 {
		long = append(long, strings.Repeat("\x01", 100<<10))
	}
	_, err := b.Create(t.Context(), sandbox.Spec{Command: long})
	assert.Equal(t, fault.KindUsage, fault.KindOf(err), "%v", err)
	assert.Contains(t, fault.HintOf(err), "into a file")
	ids, err := b.store().IDs()
	require.NoError(t, err)
	assert.Empty(t, ids, "nothing was created")

	longest := []string{"true", strings.Repeat("\x01", 100<<10)} // one argument may have 128 KiB
	made, err := b.Create(t.Context(), sandbox.Spec{Command: longest})
	require.NoError(t, err)
	_, err = b.Get(t.Context(), made.ID)
	require.NoError(t, err, "what fits can be read")
}

// TestCommandsThatFollowEachOtherAreWork: between two of them nothing runs, and the
// sandbox is as much at work as in a long one.
func TestCommandsThatFollowEachOtherAreWork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: []string{"sleep", "600"}})
	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(b.store().Dir(s.ID), later, later)) // only the command's mark may show it
	before, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	began := time.Now().Truncate(time.Millisecond)
	_, err = b.Exec(t.Context(), s.ID, providers.Command{Args: []string{"true"}})
	require.NoError(t, err)
	after, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	assert.True(t, after.LastActivityAt.After(before.LastActivityAt), "%s, before %s", after.LastActivityAt, before.LastActivityAt)
	assert.False(t, after.LastActivityAt.Before(began), "%s, began %s", after.LastActivityAt, began)
}
