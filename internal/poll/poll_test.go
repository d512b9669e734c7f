package poll_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/poll"
)

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, poll.Sleep(t.Context(), time.Hour))
		assert.Equal(t, time.Hour, time.Since(start))
		require.NoError(t, poll.Sleep(t.Context(), 0))
		require.NoError(t, poll.Sleep(t.Context(), -time.Hour))
		assert.Equal(t, time.Hour, time.Since(start))
	})
}

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, interrupted := time.Now(), errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(interrupted) })
		assert.Equal(t, interrupted, poll.Sleep(ctx, time.Hour))
		assert.Equal(t, time.Second, time.Since(start))
		assert.Equal(t, interrupted, poll.Sleep(ctx, 0), "a context that has ended allows no further step")
	})
}

func TestBackoffDoublesUpToTheLongest(t *testing.T) {
	t.Parallel()
	b := poll.NewBackoff(10*time.Millisecond, 50*time.Millisecond)
	for range 2 {
		for _, want := range []int{10, 20, 40, 50, 50} {
			assert.Equal(t, time.Duration(want)*time.Millisecond, b.Next())
		}
		b.Reset()
	}
	synctest.Test(t, func(t *testing.T) {
		b, start := poll.NewBackoff(time.Second, time.Minute), time.Now()
		require.NoError(t, b.Sleep(t.Context()))
		<-b.After()
		assert.Equal(t, 3*time.Second, time.Since(start))
	})
}
