package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

func (d Doc) readAt(now time.Time) Doc {
	d.Body, d.ReadAt = slices.Clone(d.Body), now
	return d
}

// Doc is DocStore's.
func (m *InMemory) Doc(ctx context.Context, kind, key string) (Doc, error) {
	d := Doc{Kind: text(kind), Key: text(key)}
	if err := cmp.Or(d.check(), ctx.Err()); err != nil {
		return Doc{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if found, ok := m.docs[[2]string{d.Kind, d.Key}]; ok {
		d = found
	}
	return d.readAt(kept(m.now())), nil
}

// Docs is DocStore's.
func (m *InMemory) Docs(ctx context.Context, kind string) ([]Doc, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, list := kept(m.now()), []Doc{}
	for id, d := range m.docs {
		if id[0] == text(kind) {
			list = append(list, d.readAt(now))
		}
	}
	slices.SortFunc(list, byKey)
	return list, nil
}

func byKey(a, b Doc) int { return strings.Compare(a.Key, b.Key) }

// SwapDoc is DocStore's.
func (m *InMemory) SwapDoc(ctx context.Context, doc Doc) (Doc, error) {
	if err := cmp.Or(doc.check(), ctx.Err()); err != nil {
		return Doc{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d, now := doc.kept(), kept(m.now())
	id := [2]string{d.Kind, d.Key}
	before := m.docs[id].Version
	switch {
	case before != d.Version:
		return Doc{}, docSwapped(d, before)
	case before == 0:
		m.docVersions[d.Kind]++
		before = m.docVersions[d.Kind] - 1
	}
	d.Version, d.UpdatedAt = before+1, now
	m.docs[id] = d
	return d.readAt(now), nil
}

// DropDoc is DocStore's.
func (m *InMemory) DropDoc(ctx context.Context, doc Doc) error {
	if err := cmp.Or(doc.check(), ctx.Err()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := doc.kept()
	id := [2]string{d.Kind, d.Key}
	before := m.docs[id].Version
	if before == 0 || before != d.Version {
		return docSwapped(d, before)
	}
	m.docVersions[d.Kind] = max(m.docVersions[d.Kind], before)
	delete(m.docs, id)
	return nil
}
