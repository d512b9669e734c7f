package policy_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/policy"
	"sbx/internal/testkit/bubble"
)

// shelf is a BreakerStore in memory, with the faults of a real one.
type shelf struct {
	mu       sync.Mutex
	bodies   map[string][]byte
	versions map[string]int64
	lag      func() time.Duration // before each answer; nil = none
	loadErr  error
	swapErr  error
	lost     bool // every swap is too late
}

func newShelf() *shelf { return &shelf{bodies: map[string][]byte{}, versions: map[string]int64{}} }

func (s *shelf) wait(ctx context.Context) error {
	if s.lag == nil {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.lag()):
		return nil
	}
}

func (s *shelf) LoadBreaker(ctx context.Context, key string) (policy.BreakerState, error) {
	if err := s.wait(ctx); err != nil {
		return policy.BreakerState{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return policy.BreakerState{Body: s.bodies[key], Version: s.versions[key], Now: time.Now()}, s.loadErr
}

func (s *shelf) SwapBreaker(ctx context.Context, key string, body []byte, version int64) (bool, error) {
	if err := s.wait(ctx); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.swapErr != nil || s.lost || s.versions[key] != version {
		return false, s.swapErr
	}
	s.bodies[key], s.versions[key] = body, version+1
	return true, nil
}

// told makes one call with a result.
func told(t *testing.T, s *policy.Shared, key string, r policy.Result) {
	t.Helper()
	permit, err := s.Allow(t.Context(), key, "me")
	require.NoError(t, err)
	require.NoError(t, permit.Done(t.Context(), r))
}

func opened(t *testing.T, store policy.BreakerStore, key string) *policy.Shared {
	t.Helper()
	s := policy.NewShared(store, policy.SharedOptions{})
	for range policy.SharedFaults {
		told(t, s, key, policy.ResultFault)
	}
	return s
}

func TestSharedRefusesAndSaysWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newShelf()
		opened(t, store, "prod/base")
		other := policy.NewShared(store, policy.SharedOptions{})
		<-time.After(10 * time.Second)
		_, err := other.Allow(t.Context(), "prod/base", "b:2")
		require.ErrorIs(t, err, policy.ErrOpen)
		var f *fault.Error
		require.ErrorAs(t, err, &f)
		assert.Equal(t, fault.KindRefused, f.Kind)
		assert.Equal(t, "prod", f.Provider)
		assert.Equal(t, 20*time.Second, f.RetryAfter)
		until := time.Now().Add(20 * time.Second).UTC().Format(time.RFC3339)
		assert.Equal(t, "5 of 5 calls to prod/base failed within 1m0s; it is called again at "+until+", or choose another provider", f.Hint)
		_, err = other.Allow(t.Context(), "prod", "b:2")
		require.NoError(t, err, "another key")

		<-time.After(20 * time.Second)
		probe, err := other.Allow(t.Context(), "prod/base", "b:2")
		require.NoError(t, err)
		require.True(t, probe.Probe())
		_, err = policy.NewShared(store, policy.SharedOptions{}).Allow(t.Context(), "prod/base", "c:3")
		require.ErrorAs(t, err, &f)
		assert.Equal(t, policy.SharedProbe, f.RetryAfter)
		assert.Contains(t, f.Hint, "one call by b:2 is testing it now")

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, probe.Done(ended, policy.ResultGood), "a stop of the caller loses no result")
		told(t, other, "prod/base", policy.ResultGood)
	})
}

func TestSharedDoneCountsOnce(t *testing.T) {
	t.Parallel()
	s := policy.NewShared(newShelf(), policy.SharedOptions{})
	permit, err := s.Allow(t.Context(), "prod", "me")
	require.NoError(t, err)
	for range 2 * policy.SharedFaults {
		require.NoError(t, permit.Done(t.Context(), policy.ResultFault))
	}
	_, err = s.Allow(t.Context(), "prod", "me")
	require.NoError(t, err)
	require.NoError(t, policy.Permit{}.Done(t.Context(), policy.ResultFault))
}

func TestSharedRewritesGarbage(t *testing.T) {
	t.Parallel()
	store := newShelf()
	store.bodies["prod"], store.versions["prod"] = []byte("}garbage"), 7
	s := opened(t, store, "prod")
	_, err := s.Allow(t.Context(), "prod", "me")
	require.ErrorIs(t, err, policy.ErrOpen)
	assert.EqualValues(t, 12, store.versions["prod"])
}

func TestSharedStepsAside(t *testing.T) {
	t.Parallel()
	never := func() time.Duration { return time.Hour }
	for name, spoil := range map[string]func(*shelf){
		"cannot be read":    func(s *shelf) { s.loadErr = errors.New("disk on fire") },
		"cannot be written": func(s *shelf) { s.swapErr = errors.New("disk on fire") },
		"hangs":             func(s *shelf) { s.lag = never },
		"lets nobody win":   func(s *shelf) { s.lost = true },
	} {
		bubble.Run(t, name, func(t *testing.T) {
			var notices []string
			store := newShelf()
			opened(t, store, "prod")
			<-time.After(policy.SharedOpen) // so that the next call has to probe
			spoil(store)
			s := policy.NewShared(store, policy.SharedOptions{Notice: func(text string) { notices = append(notices, text) }})
			began := time.Now()
			for range 3 {
				permit, err := s.Allow(t.Context(), "prod", "me")
				require.NoError(t, err)
				assert.False(t, permit.Probe())
				require.NoError(t, permit.Done(t.Context(), policy.ResultFault))
			}
			assert.LessOrEqual(t, time.Since(began), 10*time.Second)
			require.Len(t, notices, 1)
			assert.Contains(t, notices[0], "the shared circuit breaker of prod is bypassed")

			store.lag, store.loadErr, store.swapErr, store.lost = nil, nil, nil, false
			permit, err := s.Allow(t.Context(), "prod", "me")
			require.NoError(t, err)
			require.True(t, permit.Probe())
			spoil(store)
			err = permit.Done(t.Context(), policy.ResultGood)
			require.Equal(t, fault.KindUnavailable, fault.KindOf(err))
			assert.NotEmpty(t, fault.HintOf(err))
			assert.Len(t, notices, 2, "it worked in between")
		})
	}
}

func TestSharedAllowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newShelf()
		store.lag = func() time.Duration { return time.Second }
		s := policy.NewShared(store, policy.SharedOptions{Notice: func(text string) { t.Error(text) }})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		_, err := s.Allow(ctx, "prod", "me")
		assert.Equal(t, fault.KindCanceled, fault.KindOf(err))
	})
}

// Eight processes meet an open breaker whose provider comes and goes; some die while they
// probe. Two never probe at a time, and dead ones block nobody.
func TestOneProbeInFlight(t *testing.T) {
	t.Parallel()
	var deaths atomic.Int64
	t.Cleanup(func() { assert.Positive(t, deaths.Load(), "some seed has a prober die") })
	for seed := range uint64(4) {
		bubble.Run(t, strconv.FormatUint(seed, 10), func(t *testing.T) {
			var flight flight
			store := shelfOfOpen(t, seed)
			var all sync.WaitGroup
			for n := range uint64(8) {
				all.Go(func() { process(t, store, rand.New(rand.NewPCG(seed, n)), &flight) })
			}
			all.Wait()
			assert.Positive(t, flight.probes.Load())
			deaths.Add(flight.deaths.Load()) // it depends on the order of the goroutines
		})
	}
}

func shelfOfOpen(t *testing.T, seed uint64) *shelf {
	t.Helper()
	store := newShelf()
	opened(t, store, "prod")
	var n atomic.Uint64
	store.lag = func() time.Duration {
		return time.Duration(rand.New(rand.NewPCG(seed, n.Add(1))).IntN(3)) * time.Millisecond
	}
	return store
}

// flight counts the probing processes.
type flight struct {
	now, probes, deaths atomic.Int64
}

// process calls for twenty virtual minutes. A probe takes up to 20 s, a dead one its lease.
func process(t *testing.T, store *shelf, random *rand.Rand, f *flight) {
	t.Helper()
	s := policy.NewShared(store, policy.SharedOptions{Notice: func(text string) { t.Error(text) }})
	for end := time.Now().Add(20 * time.Minute); time.Now().Before(end); {
		permit, err := s.Allow(t.Context(), "prod", "a process")
		if err != nil {
			var refused *fault.Error
			if !errors.As(err, &refused) || refused.RetryAfter <= 0 {
				t.Error(err)
				return
			}
			<-time.After(refused.RetryAfter)
			continue
		}
		if !permit.Probe() {
			<-time.After(time.Duration(random.IntN(1000)) * time.Millisecond)
			said(t, permit, random)
			continue
		}
		f.probes.Add(1)
		assert.EqualValues(t, 1, f.now.Add(1), "probes in flight")
		if random.IntN(4) == 0 {
			f.deaths.Add(1)
			<-time.After(policy.SharedProbe - 20*time.Millisecond) // the lease began before Allow returned
			f.now.Add(-1)
			continue
		}
		<-time.After(time.Duration(random.IntN(20000)) * time.Millisecond)
		f.now.Add(-1) // from here on the next one may probe
		said(t, permit, random)
	}
}

// said takes any of the three results; a goroutine must not end the test.
func said(t *testing.T, permit policy.Permit, random *rand.Rand) {
	t.Helper()
	if err := permit.Done(t.Context(), policy.Result(random.IntN(3))); err != nil {
		t.Error(err)
	}
}

// Eight processes count concurrently, and no result is lost. As many faults as good calls
// open it; a lost result would open it sooner.
func TestNoResultIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const each = 10
		store := newShelf()
		store.lag = func() time.Duration { return time.Millisecond }
		var all sync.WaitGroup
		for range 8 {
			s := policy.NewShared(store, policy.SharedOptions{Notice: func(text string) { t.Error(text) }})
			all.Go(func() {
				for range each {
					told(t, s, "prod", policy.ResultGood)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 8*each, store.versions["prod"])
		store.lag = nil
		s := policy.NewShared(store, policy.SharedOptions{})
		for range 8 * each {
			told(t, s, "prod", policy.ResultFault)
		}
		_, err := s.Allow(t.Context(), "prod", "me")
		require.ErrorIs(t, err, policy.ErrOpen)
		assert.Contains(t, fault.HintOf(err), "80 of 160 calls")
	})
}
