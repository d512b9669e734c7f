package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
)

func testLeases(t *testing.T, s subject) {
	t.Helper()
	st := s.Store
	mine, err := st.Acquire(t.Context(), "cleanup/prod", "me", s.TTL)
	require.NoError(t, err)
	assert.Equal(t, store.Lease{Name: "cleanup/prod", Holder: "me", Fence: 1, Until: mine.Until}, mine)
	assert.Equal(t, time.UTC, mine.Until.Location())
	for _, holder := range []string{"you", "me"} {
		_, err = st.Acquire(t.Context(), "cleanup/prod", holder, time.Hour)
		requireLocked(t, err, "cleanup/prod", "held by me", mine.Until.Format(time.RFC3339))
	}
	other, err := st.Acquire(t.Context(), "cleanup/test", "you", time.Hour)
	require.NoError(t, err, "another name")
	assert.EqualValues(t, 1, other.Fence)

	renewed, err := st.Renew(t.Context(), mine, s.TTL)
	require.NoError(t, err)
	assert.False(t, renewed.Until.Before(mine.Until))
	assert.Equal(t, mine.Fence, renewed.Fence)

	testExpiredLease(t, s, renewed)
	testBadLeases(t, st)
}

// requireLocked checks a refusal with its reason and hint.
func requireLocked(t *testing.T, err error, texts ...string) {
	t.Helper()
	require.Error(t, err)
	assert.Equal(t, fault.KindLocked, fault.KindOf(err))
	assert.NotEmpty(t, fault.HintOf(err))
	for _, text := range texts {
		assert.Contains(t, err.Error(), text)
	}
}

// testExpiredLease goes on when a lease has expired: another holder takes it and gives it
// back, and the former holder cannot use it.
func testExpiredLease(t *testing.T, s subject, mine store.Lease) {
	t.Helper()
	st := s.Store
	s.Pass(t, s.TTL+time.Millisecond)
	_, err := st.Renew(t.Context(), mine, time.Hour)
	requireLocked(t, err, "it expired at")
	yours, err := st.Acquire(t.Context(), "cleanup/prod", "you", time.Hour)
	require.NoError(t, err, "it reached its time limit")
	assert.EqualValues(t, 2, yours.Fence)

	_, err = st.Renew(t.Context(), mine, time.Hour)
	requireLocked(t, err, "no longer held by me", "you")
	requireLocked(t, st.Release(t.Context(), mine), "no longer held by me", "you")
	stolen := yours
	stolen.Holder = "me"
	requireLocked(t, st.Release(t.Context(), stolen))
	_, err = st.Renew(t.Context(), stolen, time.Hour)
	requireLocked(t, err)

	require.NoError(t, st.Release(t.Context(), yours))
	requireLocked(t, st.Release(t.Context(), yours), "not held by you")
	_, err = st.Renew(t.Context(), yours, time.Hour)
	requireLocked(t, err, "not held by you")
	requireLocked(t, st.Release(t.Context(), store.Lease{Name: "never", Holder: "me", Fence: 1}), "not held by me")

	next, err := st.Acquire(t.Context(), "cleanup/prod", "me", s.TTL)
	require.NoError(t, err)
	assert.EqualValues(t, 3, next.Fence, "a fence outlives the lease that was given back")
	s.Pass(t, s.TTL+time.Millisecond)
	require.NoError(t, st.Release(t.Context(), next), "too late, and nobody else's")
}

func testBadLeases(t *testing.T, st store.Store) {
	t.Helper()
	for _, bad := range []struct {
		name, holder string
		ttl          time.Duration
	}{{"", "me", time.Hour}, {"name", "", time.Hour}, {"name", "me", 0}, {"name", "me", -time.Hour}} {
		_, err := st.Acquire(t.Context(), bad.name, bad.holder, bad.ttl)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
		_, err = st.Renew(t.Context(), store.Lease{Name: bad.name, Holder: bad.holder}, bad.ttl)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	}
}

// testLeaseRaces acquires one lease concurrently, several times: each time one call
// succeeds, and the fence counts them.
func testLeaseRaces(t *testing.T, s subject) {
	t.Helper()
	const rounds, runners = 5, 32
	st := s.Store
	for round := range rounds {
		var mu sync.Mutex
		var won []store.Lease
		var wg sync.WaitGroup
		for runner := range runners {
			wg.Go(func() {
				lease, err := st.Acquire(t.Context(), "race", fmt.Sprintf("runner %d", runner), time.Hour)
				if err != nil {
					assert.Equal(t, fault.KindLocked, fault.KindOf(err), err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				won = append(won, lease)
			})
		}
		wg.Wait()
		require.Len(t, won, 1)
		assert.EqualValues(t, round+1, won[0].Fence)
		testConcurrentRelease(t, st, won[0])
	}
}

// testConcurrentRelease gives a lease back concurrently: one call succeeds.
func testConcurrentRelease(t *testing.T, st store.Store, lease store.Lease) {
	t.Helper()
	results := make(chan error, 8)
	for range cap(results) {
		go func() { results <- st.Release(t.Context(), lease) }()
	}
	released := 0
	for range cap(results) {
		err := <-results
		if err == nil {
			released++
			continue
		}
		assert.Equal(t, fault.KindLocked, fault.KindOf(err), err)
	}
	assert.Equal(t, 1, released)
}
