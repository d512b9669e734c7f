package cli

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
	"sbx/internal/testkit/bubble"
)

// ill is a store that answers no renewal: with err, or not at all.
type ill struct {
	store.Store

	err error
}

func (s ill) Renew(ctx context.Context, l store.Lease, _ time.Duration) (store.Lease, error) {
	if s.err == nil {
		<-ctx.Done()
		return l, ctx.Err()
	}
	return l, s.err
}

func TestALeaseThatIsHeldIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := store.Memory(time.Now)
		other, err := st.Acquire(t.Context(), bulkLease, "other", leaseTTL)
		require.NoError(t, err)
		began := time.Now()
		_, err = acquireLease(t.Context(), st, "me", 0)
		assert.Equal(t, fault.KindLocked, fault.KindOf(err))
		assert.Zero(t, time.Since(began), "nobody said to wait")
		_, err = acquireLease(t.Context(), st, "me", 5*time.Second)
		assert.Equal(t, fault.KindLocked, fault.KindOf(err))
		assert.Equal(t, 5*time.Second, time.Since(began))

		time.AfterFunc(3*time.Second, func() { assert.NoError(t, st.Release(context.WithoutCancel(t.Context()), other)) })
		held, err := acquireLease(t.Context(), st, "me", time.Minute)
		require.NoError(t, err)
		assert.Less(t, time.Since(began), 10*time.Second)
		assert.Greater(t, held.Fence, other.Fence)

		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(fault.New(fault.KindTerminated, "interrupted by SIGTERM")) })
		_, err = acquireLease(ctx, st, "third", time.Hour)
		assert.Equal(t, fault.KindTerminated, fault.KindOf(err))
	})
}

func TestALeaseIsKeptForAsLongAsARunLasts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := store.Memory(time.Now)
		held, err := acquireLease(t.Context(), st, "me", 0)
		require.NoError(t, err)
		ctx, lose := context.WithCancelCause(t.Context())
		done, kept := make(chan struct{}), make(chan store.Lease)
		go func() { kept <- keepLease(ctx, st, held, lose, done) }()
		time.Sleep(10 * leaseTTL)
		_, err = acquireLease(t.Context(), st, "other", 0)
		assert.Equal(t, fault.KindLocked, fault.KindOf(err))
		require.NoError(t, ctx.Err())
		close(done)
		require.NoError(t, st.Release(t.Context(), <-kept))
		_, err = acquireLease(t.Context(), st, "other", 0)
		assert.NoError(t, err)
	})
}

// TestARunStopsBeforeItsLeaseIsOver, when the store fails or hangs: two renewals may
// fail, and a third would come too late.
func TestARunStopsBeforeItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err             error
		after, atLatest time.Duration
	}{
		"it fails":         {fault.New(fault.KindUnavailable, "no route to host"), renewEvery, leaseTTL},
		"it hangs":         {nil, renewEvery, leaseTTL},
		"somebody took it": {fault.New(fault.KindLocked, "other holds it"), 0, renewEvery},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			st := store.Memory(time.Now)
			began := time.Now()
			held, err := acquireLease(t.Context(), st, "me", 0)
			require.NoError(t, err)
			ctx, lose := context.WithCancelCause(t.Context())
			done, over := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(over)
				keepLease(ctx, ill{st, tc.err}, held, lose, done)
			}()
			<-ctx.Done()
			took := time.Since(began)
			assert.Greater(t, took, tc.after)
			assert.LessOrEqual(t, took, tc.atLatest)
			assert.Equal(t, fault.KindLocked, fault.KindOf(context.Cause(ctx)))
			assert.Contains(t, fault.HintOf(context.Cause(ctx)), "--resume")
			close(done)
			<-over
		})
	}
}
