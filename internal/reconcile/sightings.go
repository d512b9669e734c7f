package reconcile

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Sighting is how often something was seen.
type Sighting struct {
	First time.Time
	Last  time.Time // the last that counted
	Count int
}

// Sightings keep what earlier runs observed, so that one look is never proof.
type Sightings interface {
	// Sight notes that something was seen at a time. It counts when that is at
	// least apart after the last that counted; the first always does.
	Sight(ctx context.Context, kind, key string, at time.Time, apart time.Duration) (Sighting, error)
	// Forget drops what was seen under a key.
	Forget(ctx context.Context, kind, key string) error
	// Sightings gives all of a kind, by key.
	Sightings(ctx context.Context, kind string) (map[string]Sighting, error)
}

// Memory keeps sightings for as long as the process runs. Its zero value is
// ready to use.
type Memory struct {
	mu   sync.Mutex
	seen map[string]map[string]Sighting
}

// Sight is Sightings'.
func (m *Memory) Sight(ctx context.Context, kind, key string, at time.Time, apart time.Duration) (Sighting, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil {
		m.seen = map[string]map[string]Sighting{}
	}
	if m.seen[kind] == nil {
		m.seen[kind] = map[string]Sighting{}
	}
	s, known := m.seen[kind][key]
	switch {
	case !known:
		s = Sighting{First: at, Last: at, Count: 1}
	case at.Sub(s.Last) >= apart:
		s.Last, s.Count = at, s.Count+1
	}
	m.seen[kind][key] = s
	return s, ctx.Err()
}

// Forget is Sightings'.
func (m *Memory) Forget(ctx context.Context, kind, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen[kind], key)
	return ctx.Err()
}

// Sightings is Sightings'.
func (m *Memory) Sightings(ctx context.Context, kind string) (map[string]Sighting, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.seen[kind]), ctx.Err()
}
