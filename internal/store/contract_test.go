package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/store"
)

// clock is a wall clock that advances on demand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 20, 12, 0, 0, 987654321, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(_ *testing.T, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func TestMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	runContract(t, func(*testing.T) subject {
		c := newClock()
		return subject{Store: store.Memory(c.now), Pass: c.pass, TTL: time.Minute}
	})
}

func TestSQLiteKeepsTheContract(t *testing.T) {
	t.Parallel()
	runContract(t, func(t *testing.T) subject {
		t.Helper()
		c, o := newClock(), store.Options{StateDir: t.TempDir()}
		o.Now = c.now
		again := func(t *testing.T) store.Store {
			t.Helper()
			return opened(t, o)
		}
		return subject{Store: opened(t, o), Again: again, Pass: c.pass, TTL: time.Minute}
	})
}

// opened is a store that is closed with the test.
func opened(t *testing.T, o store.Options) *store.Database {
	t.Helper()
	d, err := store.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}
