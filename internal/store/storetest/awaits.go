package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
)

func awaits(t *testing.T, s Subject) {
	t.Helper()
	st := s.Store
	first := added(t, st, task(1))
	for _, version := range []int64{0, 2, -1} {
		found, err := st.AwaitTask(t.Context(), "t-1", version)
		require.NoError(t, err)
		assert.Equal(t, timeless(first), timeless(found), "at once")
	}
	_, err := st.AwaitTask(t.Context(), "nowhere", 0)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))

	others := []store.Store{st, st}
	if s.Again != nil {
		others = append(others, s.Again(t))
	}
	kept := first
	for range 3 {
		var wg sync.WaitGroup
		for _, other := range others {
			wg.Go(func() {
				found, err := other.AwaitTask(t.Context(), "t-1", kept.Version)
				if err != nil || found.Version != kept.Version+1 {
					t.Errorf("version %d after %d: %v", found.Version, kept.Version, err)
				}
			})
		}
		changed := swapped(t, st, kept, 0)
		wg.Wait()
		kept = changed
	}

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = st.AwaitTask(ctx, "t-1", kept.Version)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, fault.KindTimeout, fault.KindOf(err))
}
