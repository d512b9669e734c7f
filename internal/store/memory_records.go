package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// PutRecord is RecordStore's.
func (m *InMemory) PutRecord(ctx context.Context, record Record) error {
	if err := cmp.Or(record.check(), ctx.Err()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	record = record.kept()
	m.records[record.Ref()] = record
	return nil
}

// EndRecord is RecordStore's.
func (m *InMemory) EndRecord(ctx context.Context, ref sandbox.Ref, state sandbox.State, reason string, at time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ref = sandbox.Ref{Provider: text(ref.Provider), ID: text(ref.ID)}
	r, ok := m.records[ref]
	if !ok {
		return noRecord(ref)
	}
	r.State, r.Reason, r.UpdatedAt = state, text(reason), kept(at)
	if r.EndedAt.IsZero() {
		r.EndedAt = r.UpdatedAt
	}
	m.records[ref] = r
	return nil
}

// Records is RecordStore's.
func (m *InMemory) Records(ctx context.Context, provider string) ([]Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []Record{}
	for _, r := range m.records {
		if provider == "" || r.Provider == text(provider) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, byAge)
	return list, nil
}

// PutRun is RunStore's.
func (m *InMemory) PutRun(ctx context.Context, run Run) error {
	if err := cmp.Or(run.check(), ctx.Err()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	run = run.kept()
	m.runs[run.ID] = run
	return nil
}

// Runs is RunStore's.
func (m *InMemory) Runs(ctx context.Context, limit int) ([]Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Run, 0, len(m.runs))
	for _, r := range m.runs {
		list = append(list, r.kept())
	}
	slices.SortFunc(list, byStart)
	if limit > 0 && limit < len(list) {
		list = list[:limit]
	}
	return list, nil
}
