package monotask

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slowly answers the time of the call after a while.
func slowly(asked *int, mu *sync.Mutex) func(context.Context) (time.Time, error) {
	return func(ctx context.Context) (time.Time, error) {
		mu.Lock()
		*asked++
		mu.Unlock()
		at := time.Now()
		timer := time.NewTimer(100 * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
			return at, nil
		case <-ctx.Done():
			return at, ctx.Err()
		}
	}
}

func TestASharedAnswerIsAsFreshAsOnesOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, asked, mu := newSharedReads[time.Time](), 0, sync.Mutex{}
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				timer := time.NewTimer(time.Duration(i) * time.Millisecond)
				defer timer.Stop()
				<-timer.C
				came := time.Now()
				at, err := s.readShared(t.Context(), slowly(&asked, &mu))
				if !assert.NoError(t, err) { //nolint:testifylint // not the test's goroutine
					return
				}
				assert.False(t, at.Before(came), "it was asked %s before", came.Sub(at))
			})
		}
		all.Wait()
		assert.LessOrEqual(t, asked, 20, "they share")
	})
}

func TestOneWhoIsCutOffTakesNobodyAlong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, asked, mu := newSharedReads[time.Time](), 0, sync.Mutex{}
		first, cut := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cut()
		var all sync.WaitGroup
		all.Go(func() {
			_, err := s.readShared(first, slowly(&asked, &mu))
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
		synctest.Wait()
		for range 3 {
			all.Go(func() {
				_, err := s.readShared(t.Context(), slowly(&asked, &mu))
				assert.NoError(t, err)
			})
		}
		waiting, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		_, err := s.readShared(waiting, slowly(&asked, &mu))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		all.Wait()
		assert.Equal(t, 2, asked)
	})
}

func TestAnErrorIsShared(t *testing.T) {
	t.Parallel()
	s, broken := newSharedReads[int](), errors.New("broken")
	_, err := s.readShared(t.Context(), func(context.Context) (int, error) { return 0, broken })
	require.ErrorIs(t, err, broken)
	got, err := s.readShared(t.Context(), func(context.Context) (int, error) { return 7, nil })
	require.NoError(t, err)
	assert.Equal(t, 7, got)
}
