package lock_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/lock"
)

func holder(run string) lock.Holder {
	return lock.Holder{Run: run, Who: "ann", Host: "h1", PID: 42, Since: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
}

func TestOneHoldsAndTheOtherIsTold(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "cleanup.lock")
	first, err := lock.Take(t.Context(), path, holder("r-1"), 0)
	require.NoError(t, err)
	_, err = lock.Take(t.Context(), path, holder("r-2"), 0)
	require.EqualError(t, err, "another run is active: r-1 of ann on h1 (pid 42) since 2026-11-20T12:00:00Z")
	assert.Equal(t, fault.KindLocked, fault.KindOf(err))
	_, err = lock.Take(t.Context(), path, holder("r-2"), 20*time.Millisecond)
	assert.Equal(t, fault.KindLocked, fault.KindOf(err), "it waited, and nobody let go")
	require.NoError(t, first.Release())
	second, err := lock.Take(t.Context(), path, holder("r-2"), 0)
	require.NoError(t, err)
	require.NoError(t, second.Release())
}

func TestAWaitingOneGetsIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cleanup.lock")
	var inside atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			l, err := lock.Take(t.Context(), path, holder("r"), time.Minute)
			if err != nil {
				t.Error(err)
				return
			}
			assert.EqualValues(t, 1, inside.Add(1), "two hold it")
			inside.Add(-1)
			assert.NoError(t, l.Release())
		})
	}
	all.Wait()
}

func TestTheEndOfTheContextEndsTheWait(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cleanup.lock")
	_, err := lock.Take(t.Context(), path, holder("r-1"), 0)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fault.New(fault.KindTerminated, "interrupted by SIGTERM"))
	_, err = lock.Take(ctx, path, holder("r-2"), time.Hour)
	assert.Equal(t, fault.KindTerminated, fault.KindOf(err), "the cause says why")
}

func TestPlacesWhereNoLockCanBe(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := lock.Take(t.Context(), filepath.Join(file, "cleanup.lock"), holder("r"), 0)
	require.ErrorContains(t, err, "the lock cannot be taken")
	assert.Contains(t, fault.HintOf(err), "SBX_STATE_DIR", "a read-only root cannot be made writable")
	assert.Contains(t, fault.HintOf(err), "state directory")
}

// TestWhoCannotSayHisNameHoldsNothing: the next one gets the lock.
func TestWhoCannotSayHisNameHoldsNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cleanup.lock")
	require.NoError(t, os.Mkdir(path+".holder", 0o700))
	_, err := lock.Take(t.Context(), path, holder("r-1"), 0)
	require.ErrorContains(t, err, "the lock cannot be written")
	require.NoError(t, os.Remove(path+".holder"))
	l, err := lock.Take(t.Context(), path, holder("r-2"), 0)
	require.NoError(t, err)
	require.NoError(t, l.Release())
}

func TestAnUnreadableHolderIsNoTrouble(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cleanup.lock")
	_, err := lock.Take(t.Context(), path, holder("r-1"), 0)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path+".holder", []byte("{"), 0o600))
	_, err = lock.Take(t.Context(), path, holder("r-2"), 0)
	require.EqualError(t, err, "another run is active")
}
