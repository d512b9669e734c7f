package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/sandbox"
)

// InMemory is a Store that ends with the process, for tests and simulations.
type InMemory struct {
	now func() time.Time

	mu         sync.Mutex
	leases     map[string]Lease
	seenCounts map[[2]string]SeenCount // by kind and key
	records    map[sandbox.Ref]Record
	runs       map[string]Run
	tasks      map[string]Task
	keys       map[string]string // the task's id by its idempotency key
	docs       map[[2]string]Doc // by kind and key
	samples    []Sample          // oldest first
	acts       []Act             // oldest first

	docVersions map[string]int64 // by kind: the highest version of a dropped document

	waiters waiters
}

var _ Store = (*InMemory)(nil)

// Memory makes an empty store whose clock is now.
func Memory(now func() time.Time) *InMemory {
	return &InMemory{
		now: now, leases: map[string]Lease{}, seenCounts: map[[2]string]SeenCount{},
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

// CountSeen implements SeenCountStore.
func (m *InMemory) CountSeen(ctx context.Context, kind, key string, at time.Time, apart time.Duration) (SeenCount, error) {
	if err := ctx.Err(); err != nil {
		return SeenCount{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at, id := storedTime(at), [2]string{storableText(kind), storableText(key)}
	s, seen := m.seenCounts[id]
	switch {
	case !seen:
		s = SeenCount{First: at, Last: at, Count: 1}
	case at.Sub(s.Last) >= apart.Truncate(time.Microsecond):
		s.Last, s.Count = at, s.Count+1
	}
	m.seenCounts[id] = s
	return s, nil
}

// Forget implements SeenCountStore.
func (m *InMemory) Forget(ctx context.Context, kind, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seenCounts, [2]string{storableText(kind), storableText(key)})
	return ctx.Err()
}

// SeenCounts implements SeenCountStore.
func (m *InMemory) SeenCounts(ctx context.Context, kind string) (map[string]SeenCount, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]SeenCount{}
	for k, s := range m.seenCounts {
		if k[0] == storableText(kind) {
			found[k[1]] = s
		}
	}
	return found, nil
}

func (d Doc) copyAt(now time.Time) Doc {
	d.Body, d.ReadAt = slices.Clone(d.Body), now
	return d
}

// Doc implements DocStore.
func (m *InMemory) Doc(ctx context.Context, kind, key string) (Doc, error) {
	d := Doc{Kind: storableText(kind), Key: storableText(key)}
	if err := cmp.Or(d.checkDoc(), ctx.Err()); err != nil {
		return Doc{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if found, ok := m.docs[[2]string{d.Kind, d.Key}]; ok {
		d = found
	}
	return d.copyAt(storedTime(m.now())), nil
}

// Docs implements DocStore.
func (m *InMemory) Docs(ctx context.Context, kind string) ([]Doc, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, list := storedTime(m.now()), []Doc{}
	for id, d := range m.docs {
		if id[0] == storableText(kind) {
			list = append(list, d.copyAt(now))
		}
	}
	slices.SortFunc(list, compareKeys)
	return list, nil
}

func compareKeys(a, b Doc) int { return strings.Compare(a.Key, b.Key) }

// SwapDoc implements DocStore.
func (m *InMemory) SwapDoc(ctx context.Context, doc Doc) (Doc, error) {
	if err := cmp.Or(doc.checkDoc(), ctx.Err()); err != nil {
		return Doc{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d, now := doc.storable(), storedTime(m.now())
	id := [2]string{d.Kind, d.Key}
	before := m.docs[id].Version
	switch {
	case before != d.Version:
		return Doc{}, docSwapError(d, before)
	case before == 0:
		m.docVersions[d.Kind]++
		before = m.docVersions[d.Kind] - 1
	}
	d.Version, d.UpdatedAt = before+1, now
	m.docs[id] = d
	return d.copyAt(now), nil
}

// DropDoc implements DocStore.
func (m *InMemory) DropDoc(ctx context.Context, doc Doc) error {
	if err := cmp.Or(doc.checkDoc(), ctx.Err()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := doc.storable()
	id := [2]string{d.Kind, d.Key}
	before := m.docs[id].Version
	if before == 0 || before != d.Version {
		return docSwapError(d, before)
	}
	m.docVersions[d.Kind] = max(m.docVersions[d.Kind], before)
	delete(m.docs, id)
	return nil
}

// PutRecord implements RecordStore.
func (m *InMemory) PutRecord(ctx context.Context, record Record) error {
	if err := cmp.Or(record.checkRecord(), ctx.Err()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	record = record.storable()
	m.records[record.Ref()] = record
	return nil
}

// EndRecord implements RecordStore.
func (m *InMemory) EndRecord(ctx context.Context, ref sandbox.Ref, state sandbox.State, reason string, at time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ref = sandbox.Ref{Provider: storableText(ref.Provider), ID: storableText(ref.ID)}
	r, ok := m.records[ref]
	if !ok {
		return noRecordError(ref)
	}
	r.State, r.Reason, r.UpdatedAt = state, storableText(reason), storedTime(at)
	if r.EndedAt.IsZero() {
		r.EndedAt = r.UpdatedAt
	}
	m.records[ref] = r
	return nil
}

// Records implements RecordStore.
func (m *InMemory) Records(ctx context.Context, provider string) ([]Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []Record{}
	for _, r := range m.records {
		if provider == "" || r.Provider == storableText(provider) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, compareAge)
	return list, nil
}

// PutRun implements RunStore.
func (m *InMemory) PutRun(ctx context.Context, run Run) error {
	if err := cmp.Or(run.checkRun(), ctx.Err()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	run = run.storable()
	m.runs[run.ID] = run
	return nil
}

// Runs implements RunStore.
func (m *InMemory) Runs(ctx context.Context, limit int) ([]Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Run, 0, len(m.runs))
	for _, r := range m.runs {
		list = append(list, r.storable())
	}
	slices.SortFunc(list, compareStart)
	if limit > 0 && limit < len(list) {
		list = list[:limit]
	}
	return list, nil
}
