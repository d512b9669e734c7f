package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

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
