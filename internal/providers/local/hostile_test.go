//go:build unix

package local_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

// odd is what a program may leave where one of its sandbox's files belongs.
func odd(foreign string) map[string]func(path string) error {
	return map[string]func(path string) error{
		"fifo":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link":   func(path string) error { return os.Symlink(foreign, path) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"absent": func(string) error { return nil },
	}
}

// within fails a test that hangs, and says where.
func within(t *testing.T, limit time.Duration, what string, do func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(ctx)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		require.FailNow(t, "it hangs", what)
	}
}

func TestAReplacedLockMakesNoLivingSandboxDead(t *testing.T) {
	t.Parallel()
	foreign := filepath.Join(t.TempDir(), "foreign")
	require.NoError(t, os.WriteFile(foreign, []byte("precious"), 0o600))
	for name, plant := range odd(foreign) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.sh(t, "echo up; sleep 600")
			b.waitFor(t, s.ID, "up")
			lock := filepath.Join(b.store().Dir(s.ID), "lock")
			require.NoError(t, os.Remove(lock))
			require.NoError(t, plant(lock))
			within(t, 10*time.Second, "sweep and get", func(ctx context.Context) {
				swept, _ := b.Sweep(ctx) // that it complains is right, that it acts is not
				assert.Empty(t, swept.Refs)
				seen, err := b.Get(ctx, s.ID)
				assert.Equal(t, fault.KindNone, fault.KindOf(err))
				assert.Equal(t, sandbox.StateRunning, seen.State)
			})
			within(t, 20*time.Second, "terminate", func(ctx context.Context) {
				assert.NoError(t, b.Terminate(ctx, s.ID, providers.TerminateOptions{By: "test"}))
			})
			nothingLeft(t, s.ID)
			ended, err := b.Get(t.Context(), s.ID)
			require.NoError(t, err)
			assert.Equal(t, sandbox.StateTerminated, ended.State)
			raw, err := os.ReadFile(foreign)
			require.NoError(t, err)
			assert.Equal(t, "precious", string(raw))
		})
	}
}

func TestAReplacedLockOfADeadSupervisorIsNoObstacle(t *testing.T) {
	t.Parallel()
	foreign := filepath.Join(t.TempDir(), "foreign")
	require.NoError(t, os.WriteFile(foreign, []byte("precious"), 0o600))
	for name, plant := range odd(foreign) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.sh(t, "sleep 600")
			supervisor := b.record(t, s.ID).Supervisor
			require.NoError(t, syscall.Kill(supervisor.PID, syscall.SIGKILL))
			nothingLeft(t, s.ID)
			lock := filepath.Join(b.store().Dir(s.ID), "lock")
			require.NoError(t, os.Remove(lock))
			require.NoError(t, plant(lock))
			require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "test"}))
			ended, err := b.Get(t.Context(), s.ID)
			require.NoError(t, err)
			assert.True(t, ended.State.Ended())
			assert.FileExists(t, foreign)
		})
	}
}

func TestAReplacedRecordHangsNobody(t *testing.T) {
	t.Parallel()
	foreign := filepath.Join(t.TempDir(), "foreign")
	require.NoError(t, os.WriteFile(foreign, []byte("precious"), 0o600))
	for name, plant := range odd(foreign) {
		if name == "absent" {
			continue // a sandbox without a record is half made, not garbage
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s, other := b.sh(t, "sleep 600"), b.sh(t, "sleep 600")
			file := filepath.Join(b.store().Dir(s.ID), "record.json")
			require.NoError(t, os.Remove(file))
			require.NoError(t, plant(file))
			within(t, 10*time.Second, "sweep, list and get", func(ctx context.Context) {
				_, _ = b.Sweep(ctx)
				var ids []string
				for seen, err := range b.List(ctx, providers.Query{}) {
					if err == nil {
						ids = append(ids, seen.ID)
					}
				}
				assert.ElementsMatch(t, []string{s.ID, other.ID}, ids)
				_, err := b.Get(ctx, s.ID)
				assert.ErrorIs(t, err, providers.ErrUnreadable)
			})
			within(t, 20*time.Second, "terminate --delete", func(ctx context.Context) {
				assert.NoError(t, b.Terminate(ctx, s.ID, providers.TerminateOptions{Delete: true, By: "test"}))
			})
			nothingLeft(t, s.ID)
			assert.FileExists(t, foreign)
		})
	}
}

func TestAFifoForALogEndsLikeAnyOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, `mkfifo ../output.log; seq 100000; touch done; sleep 600`)
	work := b.store().Work(s.ID)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(work, "done"))
		return err == nil
	}, tiertest.Limit(t), 5*time.Millisecond, "the program waits for its log")
	for _, err := range b.Logs(t.Context(), s.ID, providers.LogQuery{}) {
		require.Equal(t, fault.KindUnavailable, fault.KindOf(err))
		require.ErrorContains(t, err, "not a regular file")
	}
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "test"}))
	require.Positive(t, b.record(t, s.ID).Exit.DroppedBytes, "what was not stored is counted")
}
