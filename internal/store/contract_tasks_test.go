package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
)

// exampleTask has a value in every field that AddTask accepts.
func exampleTask(n int) store.Task {
	return store.Task{
		ID: fmt.Sprintf("t-%d", n), Key: fmt.Sprintf("key-%d", n), Spec: "spec", State: "pending", Fence: 7, Owner: "me",
		LeaseUntil: exampleTime(n + 1), Budget: "fleet", CreatedAt: exampleTime(n), Body: []byte(`{"a":"ü"}`),
	}
}

// mustAdd adds a task that must be new.
func mustAdd(t *testing.T, st store.Store, task store.Task) store.Task {
	t.Helper()
	kept, isNew, err := st.AddTask(t.Context(), task)
	require.NoError(t, err)
	require.True(t, isNew)
	return kept
}

// withoutTimes is a task without the times of the store's clock.
func withoutTimes(t store.Task) store.Task {
	t.UpdatedAt, t.ReadAt = time.Time{}, time.Time{}
	return t
}

func testTasks(t *testing.T, s subject) {
	t.Helper()
	st := s.Store
	kept := mustAdd(t, st, exampleTask(1))
	want := exampleTask(1)
	want.Version, want.LeaseUntil, want.CreatedAt = 1, storedTime(want.LeaseUntil), storedTime(want.CreatedAt)
	assert.Equal(t, want, withoutTimes(kept))
	assert.Equal(t, time.UTC, kept.UpdatedAt.Location())
	s.Pass(t, time.Millisecond)
	found, err := st.Task(t.Context(), "t-1")
	require.NoError(t, err)
	assert.True(t, found.ReadAt.After(kept.ReadAt), "the clock of the store went on")
	found.ReadAt = kept.ReadAt
	assert.Equal(t, kept, found)
	kept.Body[2], found.Body[2] = 'b', 'c'
	found, err = st.Task(t.Context(), "t-1")
	require.NoError(t, err)
	assert.Equal(t, want.Body, found.Body, "what was handed out changes nothing")

	same := exampleTask(2)
	same.Key, same.Spec = "key-1", "another spec"
	for _, id := range []string{"t-2", "t-1"} {
		same.ID = id
		found, isNew, err := st.AddTask(t.Context(), same)
		require.NoError(t, err)
		assert.False(t, isNew, "the key is taken")
		assert.Equal(t, want, withoutTimes(found))
	}
	for _, id := range []string{"t-3", "t-4"} {
		bare := mustAdd(t, st, store.Task{ID: id, Version: 9})
		assert.Equal(t, store.Task{ID: id, Version: 1, CreatedAt: bare.UpdatedAt}, withoutTimes(bare), "no key is no key")
	}
	testBadTasks(t, st)
	all, err := st.Tasks(t.Context(), store.TaskQuery{})
	require.NoError(t, err)
	assert.Len(t, all, 3)
}

func testBadTasks(t *testing.T, st store.Store) {
	t.Helper()
	long := strings.Repeat("x", 1025)
	for name, bad := range map[string]store.Task{
		"no id": {Key: "k"}, "id taken": {ID: "t-1"}, "id taken, key free": {ID: "t-1", Key: "free"}, "reserves": {ID: "t-9", ReserveMB: 1},
		"long id": {ID: long}, "long key": {ID: "t-9", Key: long}, "long budget": {ID: "t-9", Budget: long},
	} {
		_, isNew, err := st.AddTask(t.Context(), bad)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), name)
		assert.False(t, isNew, name)
	}
	for _, id := range []string{"t-9", "t", "", "T-1"} {
		_, err := st.Task(t.Context(), id)
		assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "exact ids only")
		assert.NotEmpty(t, fault.HintOf(err))
	}
}

func testTaskLists(t *testing.T, s subject) {
	t.Helper()
	st := s.Store
	ids := func(q store.TaskQuery) string {
		t.Helper()
		list, err := st.Tasks(t.Context(), q)
		require.NoError(t, err)
		assert.NotNil(t, list)
		var ids []string
		for _, one := range list {
			ids = append(ids, one.ID)
		}
		return strings.Join(ids, " ")
	}
	assert.Empty(t, ids(store.TaskQuery{}))
	for _, id := range []string{"b1", "B2", "b3", "a%", "a_", "ü1"} {
		mustAdd(t, st, store.Task{ID: id, CreatedAt: exampleTime(1)})
	}
	mustAdd(t, st, store.Task{ID: "new", CreatedAt: exampleTime(2)})
	over := exampleTask(4)
	over.Ended = true
	mustAdd(t, st, exampleTask(3))
	mustAdd(t, st, over)
	const all = "t-4 t-3 new ü1 b3 b1 a_ a% B2"
	for _, c := range []struct {
		want string
		q    store.TaskQuery
	}{
		{all, store.TaskQuery{}},
		{all, store.TaskQuery{Limit: -1}},
		{all, store.TaskQuery{Limit: 50}},
		{"t-4 t-3 new ü1 b3", store.TaskQuery{Limit: 5}},
		{"t-4 t-3", store.TaskQuery{Prefix: "t-"}},
		{"a%", store.TaskQuery{Prefix: "a%"}},
		{"a_", store.TaskQuery{Prefix: "a_"}},
		{"ü1", store.TaskQuery{Prefix: "ü"}},
		{"", store.TaskQuery{Prefix: "b1x"}},
		{"t-3 new ü1 b3 b1 a_ a% B2", store.TaskQuery{Live: true}},
		{"t-4 t-3 new", store.TaskQuery{Since: storedTime(exampleTime(2))}},
		{"t-4 t-3", store.TaskQuery{Since: storedTime(exampleTime(2)).Add(time.Microsecond), Limit: 2}},
		{"t-3", store.TaskQuery{Since: exampleTime(3), Live: true, Prefix: "t"}},
		{"new", store.TaskQuery{Since: exampleTime(2), Live: true, Prefix: "n", Limit: 1}},
	} {
		assert.Equal(t, c.want, ids(c.q), "%+v", c.q)
	}
}

func testAwaits(t *testing.T, s subject) {
	t.Helper()
	st := s.Store
	first := mustAdd(t, st, exampleTask(1))
	for _, version := range []int64{0, 2, -1} {
		found, err := st.AwaitTask(t.Context(), "t-1", version)
		require.NoError(t, err)
		assert.Equal(t, withoutTimes(first), withoutTimes(found), "at once")
	}
	_, err := st.AwaitTask(t.Context(), "nowhere", 0)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))

	others := []store.Store{st, st}
	if s.Again != nil {
		others = append(others, s.Again(t))
	}
	kept := first
	for range 3 {
		var wg sync.WaitGroup
		for _, other := range others {
			wg.Go(func() {
				found, err := other.AwaitTask(t.Context(), "t-1", kept.Version)
				if err != nil || found.Version != kept.Version+1 {
					t.Errorf("version %d after %d: %v", found.Version, kept.Version, err)
				}
			})
		}
		changed := mustSwap(t, st, kept, 0)
		wg.Wait()
		kept = changed
	}

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = st.AwaitTask(ctx, "t-1", kept.Version)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, fault.KindTimeout, fault.KindOf(err))
}
