package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
)

// task is one with something in every field that AddTask takes.
func task(n int) store.Task {
	return store.Task{
		ID: fmt.Sprintf("t-%d", n), Key: fmt.Sprintf("key-%d", n), Spec: "spec", State: "pending", Fence: 7, Owner: "me",
		LeaseUntil: day(n + 1), Budget: "fleet", CreatedAt: day(n), Body: []byte(`{"a":"ü"}`),
	}
}

// added adds a task that must be new.
func added(t *testing.T, st store.Store, task store.Task) store.Task {
	t.Helper()
	kept, isNew, err := st.AddTask(t.Context(), task)
	require.NoError(t, err)
	require.True(t, isNew)
	return kept
}

// timeless is a task without what the store's clock says.
func timeless(t store.Task) store.Task {
	t.UpdatedAt, t.ReadAt = time.Time{}, time.Time{}
	return t
}

func tasks(t *testing.T, s Subject) {
	t.Helper()
	st := s.Store
	kept := added(t, st, task(1))
	want := task(1)
	want.Version, want.LeaseUntil, want.CreatedAt = 1, stored(want.LeaseUntil), stored(want.CreatedAt)
	assert.Equal(t, want, timeless(kept))
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

	same := task(2)
	same.Key, same.Spec = "key-1", "another spec"
	for _, id := range []string{"t-2", "t-1"} {
		same.ID = id
		found, isNew, err := st.AddTask(t.Context(), same)
		require.NoError(t, err)
		assert.False(t, isNew, "the key is taken")
		assert.Equal(t, want, timeless(found))
	}
	for _, id := range []string{"t-3", "t-4"} {
		bare := added(t, st, store.Task{ID: id, Version: 9})
		assert.Equal(t, store.Task{ID: id, Version: 1, CreatedAt: bare.UpdatedAt}, timeless(bare), "no key is no key")
	}
	badTasks(t, st)
	all, err := st.Tasks(t.Context(), store.TaskQuery{})
	require.NoError(t, err)
	assert.Len(t, all, 3)
}

func badTasks(t *testing.T, st store.Store) {
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

func taskLists(t *testing.T, s Subject) {
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
		added(t, st, store.Task{ID: id, CreatedAt: day(1)})
	}
	added(t, st, store.Task{ID: "new", CreatedAt: day(2)})
	over := task(4)
	over.Over = true
	added(t, st, task(3))
	added(t, st, over)
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
		{"t-4 t-3 new", store.TaskQuery{Since: stored(day(2))}},
		{"t-4 t-3", store.TaskQuery{Since: stored(day(2)).Add(time.Microsecond), Limit: 2}},
		{"t-3", store.TaskQuery{Since: day(3), Live: true, Prefix: "t"}},
		{"new", store.TaskQuery{Since: day(2), Live: true, Prefix: "n", Limit: 1}},
	} {
		assert.Equal(t, c.want, ids(c.q), "%+v", c.q)
	}
}
