//go:build linux

package local_test

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

func TestProbeSaysWhatToDoNext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, tc := range map[string]struct {
		keepAfterExit bool
		script        string
		change        func(id string)
		verdict       sandbox.Verdict
		want          providers.Condition
	}{
		"it runs":                {false, "sleep 600", nil, sandbox.True, providers.ConditionHealthy},
		"it stays":               {true, "exit 3", func(id string) { b.exited(t, id) }, sandbox.True, providers.ConditionHealthy},
		"it has ended":           {false, "exit 3", func(id string) { b.ended(t, id) }, sandbox.False, providers.ConditionRecreate},
		"its supervisor is dead": {false, "sleep 600", func(id string) { kill(t, b.record(t, id).Supervisor.PID); nothingLeft(t, id) }, sandbox.False, providers.ConditionRecreate},
		"its stub hangs": {false, "sleep 600", func(id string) {
			require.NoError(t, syscall.Kill(b.record(t, id).Stub.PID, syscall.SIGSTOP))
		}, sandbox.False, providers.ConditionBroken},
		"its socket is gone": {false, "sleep 600", func(id string) { require.NoError(t, os.Remove(b.store().Socket(id))) }, sandbox.False, providers.ConditionBroken},
		"it is being ended": {false, "sleep 600", func(id string) {
			r := b.record(t, id)
			r.State = sandbox.StateTerminating
			require.NoError(t, b.store().Write(r))
		}, sandbox.Unknown, providers.ConditionWait},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := b.create(t, sandbox.Spec{Command: []string{"sh", "-c", tc.script}, KeepAfterExit: tc.keepAfterExit})
			if tc.change != nil {
				tc.change(s.ID)
			}
			var h providers.Health
			require.Eventually(t, func() bool { // a dead supervisor's threads go one by one
				var err error
				h, err = b.Probe(t.Context(), s.ID)
				require.NoError(t, err)
				return h.Condition == tc.want
			}, tiertest.Limit(t), 5*time.Millisecond, "%+v", h)
			assert.Equal(t, tc.verdict, h.Verdict)
			assert.NotEmpty(t, h.Evidence)
		})
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

// Earlier connections fill the short queue of a hanging stub.
func TestProbeOfACrowdedSocketHearsItsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, "sleep 600")
	require.NoError(t, syscall.Kill(b.record(t, s.ID).Stub.PID, syscall.SIGSTOP))
	for range 1000 {
		conn, err := wire.TryConnect(b.store().Dir(s.ID))
		if err != nil {
			require.ErrorIs(t, err, syscall.EAGAIN)
			break
		}
		t.Cleanup(func() { conn.Close() })
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := b.Probe(ctx, s.ID)
	assert.Equal(t, fault.KindTimeout, fault.KindOf(err), "%v", err)
	if tiertest.IsLong("that a look ends with its context, within a second") {
		assert.Less(t, time.Since(began), time.Second)
	}
	h, err := b.Probe(t.Context(), s.ID)
	require.NoError(t, err)
	assert.Equal(t, providers.ConditionBroken, h.Condition)
}

// TestAProgramThatWritesElsewhereIsListed: its log shows nothing of what it does.
func TestAProgramThatWritesElsewhereIsListed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for script, want := range map[string]bool{
		"sleep 600; :": false, "exec sleep 600 2>&1": false, "exec sleep 600 > out.json 2>&1": true, "sleep 600 > out.json; :": true, "exec sleep 600 2> /dev/null": true,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			s := b.create(t, sandbox.Spec{Command: []string{"sh", "-c", script}})
			require.Eventually(t, func() bool {
				found, err := b.Processes(t.Context(), s.ID)
				require.NoError(t, err)
				return want == (len(found) > 0)
			}, tiertest.Limit(t), 5*time.Millisecond)
		})
	}
}
