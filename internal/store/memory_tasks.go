package store

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// AddTask is TaskStore's.
func (m *InMemory) AddTask(ctx context.Context, task Task) (added Task, isNew bool, err error) {
	if err := cmp.Or(task.checkNew(), ctx.Err()); err != nil {
		return Task{}, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, t := kept(m.now()), task.kept()
	if id, taken := m.keys[t.Key]; taken {
		return m.tasks[id].readAt(now), false, nil
	}
	if _, taken := m.tasks[t.ID]; taken {
		return Task{}, false, taskTaken(t.ID)
	}
	t.Version, t.UpdatedAt = 1, now
	if t.CreatedAt.IsZero() {
		t.CreatedAt = now
	}
	if t.Key != "" {
		m.keys[t.Key] = t.ID
	}
	m.tasks[t.ID] = t
	return t.readAt(now), true, nil
}

// readAt is the task for whoever asks: it shares nothing with what is kept.
func (t Task) readAt(now time.Time) Task {
	t.Body, t.ReadAt = slices.Clone(t.Body), now
	return t
}

// Task is TaskStore's.
func (m *InMemory) Task(ctx context.Context, id string) (Task, error) {
	if err := ctx.Err(); err != nil {
		return Task{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.tasks[text(id)]
	if !ok {
		return Task{}, noTask(text(id))
	}
	return t.readAt(kept(m.now())), nil
}

// Tasks is TaskStore's.
func (m *InMemory) Tasks(ctx context.Context, q TaskQuery) ([]Task, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, list := kept(m.now()), []Task{}
	q.Prefix, q.Since = text(q.Prefix), kept(q.Since)
	for _, t := range m.tasks {
		if q.holds(t) {
			list = append(list, t.readAt(now))
		}
	}
	slices.SortFunc(list, byCreation)
	if q.Limit > 0 && q.Limit < len(list) {
		list = list[:q.Limit]
	}
	return list, nil
}

// SwapTask is TaskStore's.
func (m *InMemory) SwapTask(ctx context.Context, task Task, limitMB int64) (Task, error) {
	if err := cmp.Or(task.check(), ctx.Err()); err != nil {
		return Task{}, err
	}
	t, err := m.swapTask(task.kept(), limitMB)
	if err == nil {
		m.board.tell(t.ID)
	}
	return t, err
}

func (m *InMemory) swapTask(t Task, limitMB int64) (Task, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, ok := m.tasks[t.ID]
	if !ok {
		return Task{}, noTask(t.ID)
	}
	if before.Over || before.Version != t.Version || t.Fence < before.Fence {
		return Task{}, unswapped(t, before, reserved{})
	}
	if r := (reserved{m.others(t), limitMB}); t.Budget != "" && limitMB > 0 && grows(t, before) && r.others > limitMB-t.ReserveMB {
		return Task{}, unswapped(t, before, r)
	}
	now := kept(m.now())
	t.Key, t.Spec, t.CreatedAt = before.Key, before.Spec, before.CreatedAt
	t.Version, t.UpdatedAt = before.Version+1, now
	m.tasks[t.ID] = t
	return t.readAt(now), nil
}

// others is what all other live tasks reserve of a task's budget, in MB.
func (m *InMemory) others(t Task) (sum int64) {
	for _, other := range m.tasks {
		if other.ID != t.ID && !other.Over && other.Budget == t.Budget {
			sum += other.ReserveMB
		}
	}
	return sum
}

// AwaitTask is TaskStore's: it wakes at once.
func (m *InMemory) AwaitTask(ctx context.Context, id string, version int64) (Task, error) {
	heard, leave := m.board.hear(text(id))
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
