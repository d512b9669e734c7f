package store

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// AddTask implements TaskStore.
func (m *InMemory) AddTask(ctx context.Context, task Task) (added Task, isNew bool, err error) {
	if err := cmp.Or(task.checkNewTask(), ctx.Err()); err != nil {
		return Task{}, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, t := storedTime(m.now()), task.storable()
	if id, taken := m.keys[t.Key]; taken {
		return m.tasks[id].copyAt(now), false, nil
	}
	if _, taken := m.tasks[t.ID]; taken {
		return Task{}, false, taskTakenError(t.ID)
	}
	t.Version, t.UpdatedAt = 1, now
	if t.CreatedAt.IsZero() {
		t.CreatedAt = now
	}
	if t.Key != "" {
		m.keys[t.Key] = t.ID
	}
	m.tasks[t.ID] = t
	return t.copyAt(now), true, nil
}

// copyAt is a copy for the caller, which shares no memory with the stored task.
func (t Task) copyAt(now time.Time) Task {
	t.Body, t.ReadAt = slices.Clone(t.Body), now
	return t
}

// Task implements TaskStore.
func (m *InMemory) Task(ctx context.Context, id string) (Task, error) {
	if err := ctx.Err(); err != nil {
		return Task{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.tasks[storableText(id)]
	if !ok {
		return Task{}, noTaskError(storableText(id))
	}
	return t.copyAt(storedTime(m.now())), nil
}

// Tasks implements TaskStore.
func (m *InMemory) Tasks(ctx context.Context, q TaskQuery) ([]Task, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, list := storedTime(m.now()), []Task{}
	q.Prefix, q.Since = storableText(q.Prefix), storedTime(q.Since)
	for _, t := range m.tasks {
		if q.matches(t) {
			list = append(list, t.copyAt(now))
		}
	}
	slices.SortFunc(list, compareCreation)
	if q.Limit > 0 && q.Limit < len(list) {
		list = list[:q.Limit]
	}
	return list, nil
}

// SwapTask implements TaskStore.
func (m *InMemory) SwapTask(ctx context.Context, task Task, limitMB int64) (Task, error) {
	if err := cmp.Or(task.checkTask(), ctx.Err()); err != nil {
		return Task{}, err
	}
	t, err := m.swapTask(task.storable(), limitMB)
	if err == nil {
		m.waiters.publishTopic(t.ID)
	}
	return t, err
}

func (m *InMemory) swapTask(t Task, limitMB int64) (Task, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, ok := m.tasks[t.ID]
	if !ok {
		return Task{}, noTaskError(t.ID)
	}
	if before.Ended || before.Version != t.Version || t.Fence < before.Fence {
		return Task{}, swapError(t, before, reservation{})
	}
	if r := (reservation{m.othersReserve(t), limitMB}); t.Budget != "" && limitMB > 0 && growsReservation(t, before) && r.others > limitMB-t.ReserveMB {
		return Task{}, swapError(t, before, r)
	}
	now := storedTime(m.now())
	t.Key, t.Spec, t.CreatedAt = before.Key, before.Spec, before.CreatedAt
	t.Version, t.UpdatedAt = before.Version+1, now
	m.tasks[t.ID] = t
	return t.copyAt(now), nil
}

// othersReserve is what all other live tasks reserve of a task's budget, in MB.
func (m *InMemory) othersReserve(t Task) (sum int64) {
	for _, other := range m.tasks {
		if other.ID != t.ID && !other.Ended && other.Budget == t.Budget {
			sum += other.ReserveMB
		}
	}
	return sum
}

// AwaitTask implements TaskStore: it wakes at once.
func (m *InMemory) AwaitTask(ctx context.Context, id string, version int64) (Task, error) {
	heard, leave := m.waiters.subscribe(storableText(id))
	defer leave()
	for {
		t, err := m.Task(ctx, id)
		if err != nil || t.Version != version {
			return t, err
		}
		select {
		case <-ctx.Done():
			return Task{}, ctx.Err()
		case <-heard:
		}
	}
}
