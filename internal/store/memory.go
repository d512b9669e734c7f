package store

import (
	"cmp"
	"context"
	"sync"
	"time"

	"sbx/internal/sandbox"
)

// InMemory is a Store that ends with the process, for tests and simulations.
type InMemory struct {
	now func() time.Time

	mu        sync.Mutex
	leases    map[string]Lease
	sightings map[[2]string]Sighting // by kind and key
	records   map[sandbox.Ref]Record
	runs      map[string]Run
	tasks     map[string]Task
	keys      map[string]string // the task's id by its idempotency key
	docs      map[[2]string]Doc // by kind and key

	docVersions map[string]int64 // by kind: the highest version of a dropped document

	board waiters
}

var _ Store = (*InMemory)(nil)

// Memory makes an empty store whose clock is now.
func Memory(now func() time.Time) *InMemory {
	return &InMemory{
		now: now, leases: map[string]Lease{}, sightings: map[[2]string]Sighting{},
		records: map[sandbox.Ref]Record{}, runs: map[string]Run{},
		tasks: map[string]Task{}, keys: map[string]string{}, docs: map[[2]string]Doc{}, docVersions: map[string]int64{},
	}
}

// Close does nothing.
func (m *InMemory) Close() error { return nil }

// Acquire implements LeaseStore.
func (m *InMemory) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (Lease, error) {
	if err := cmp.Or(checkLease(name, holder, ttl), ctx.Err()); err != nil {
		return Lease{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, name, holder := storedTime(m.now()), storableText(name), storableText(holder)
	before := m.leases[name]
	if before.Until.After(now) {
		return Lease{}, heldError(before)
	}
	m.leases[name] = Lease{Name: name, Holder: holder, Fence: before.Fence + 1, Until: storedTime(now.Add(ttl))}
	return m.leases[name], nil
}

// Renew implements LeaseStore.
func (m *InMemory) Renew(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	if err := cmp.Or(checkLease(lease.Name, lease.Holder, ttl), ctx.Err()); err != nil {
		return Lease{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, found := storedTime(m.now()), m.leases[lease.Name]
	if found.Fence != lease.Fence || found.Holder != lease.Holder || !found.Until.After(now) {
		return Lease{}, lostError(lease, found)
	}
	found.Until = storedTime(now.Add(ttl))
	m.leases[lease.Name] = found
	return found, nil
}

// Release implements LeaseStore.
func (m *InMemory) Release(ctx context.Context, lease Lease) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.leases[lease.Name]
	if found.Fence != lease.Fence || found.Holder != lease.Holder || found.Holder == "" {
		return lostError(lease, found)
	}
	m.leases[lease.Name] = Lease{Name: lease.Name, Fence: lease.Fence} // the fence continues from here
	return nil
}

// Sight implements SightingStore.
func (m *InMemory) Sight(ctx context.Context, kind, key string, at time.Time, apart time.Duration) (Sighting, error) {
	if err := ctx.Err(); err != nil {
		return Sighting{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at, id := storedTime(at), [2]string{storableText(kind), storableText(key)}
	s, seen := m.sightings[id]
	switch {
	case !seen:
		s = Sighting{First: at, Last: at, Count: 1}
	case at.Sub(s.Last) >= apart.Truncate(time.Microsecond):
		s.Last, s.Count = at, s.Count+1
	}
	m.sightings[id] = s
	return s, nil
}

// Forget implements SightingStore.
func (m *InMemory) Forget(ctx context.Context, kind, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sightings, [2]string{storableText(kind), storableText(key)})
	return ctx.Err()
}

// Sightings implements SightingStore.
func (m *InMemory) Sightings(ctx context.Context, kind string) (map[string]Sighting, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]Sighting{}
	for k, s := range m.sightings {
		if k[0] == storableText(kind) {
			found[k[1]] = s
		}
	}
	return found, nil
}
