package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

func sightings(t *testing.T, s Subject) {
	t.Helper()
	st := s.Store
	start := day(1)
	see := func(after, apart time.Duration, count int, last time.Duration) {
		t.Helper()
		got, err := st.Sight(t.Context(), "orphan", "prod/a", start.Add(after), apart)
		require.NoError(t, err)
		assert.Equal(t, store.Sighting{First: stored(start), Last: stored(start.Add(last)), Count: count}, got)
	}
	see(0, time.Minute, 1, 0)
	see(time.Minute-time.Microsecond, time.Minute, 1, 0)
	see(time.Minute, time.Minute, 2, time.Minute)
	see(2*time.Minute-time.Microsecond, time.Minute, 2, time.Minute)
	see(time.Second, 0, 2, time.Minute) // a clock that went back counts nothing
	see(time.Minute, 0, 3, time.Minute)
	see(time.Hour, time.Minute, 4, time.Hour)

	_, err := st.Sight(t.Context(), "orphan", "prod/b", start, time.Minute)
	require.NoError(t, err)
	_, err = st.Sight(t.Context(), "first_seen", "prod/a", start, time.Minute)
	require.NoError(t, err)
	all, err := st.Sightings(t.Context(), "orphan")
	require.NoError(t, err)
	assert.Equal(t, map[string]store.Sighting{
		"prod/a": {First: stored(start), Last: stored(start.Add(time.Hour)), Count: 4},
		"prod/b": {First: stored(start), Last: stored(start), Count: 1},
	}, all)

	require.NoError(t, st.Forget(t.Context(), "orphan", "prod/a"))
	require.NoError(t, st.Forget(t.Context(), "orphan", "prod/a"), "twice")
	all, err = st.Sightings(t.Context(), "orphan")
	require.NoError(t, err)
	assert.Len(t, all, 1)
	all, err = st.Sightings(t.Context(), "nothing")
	require.NoError(t, err)
	assert.NotNil(t, all)
	assert.Empty(t, all)
	sightedAtOnce(t, st)
}

// sightedAtOnce shows that no observation is lost or counted twice.
func sightedAtOnce(t *testing.T, st store.Store) {
	t.Helper()
	const runners = 16
	var wg sync.WaitGroup
	for range runners {
		wg.Go(func() {
			_, errAtOnce := st.Sight(t.Context(), "at once", "key", day(1), 0)
			_, errApart := st.Sight(t.Context(), "apart", "key", day(1), time.Minute)
			if err := errors.Join(errAtOnce, errApart); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for kind, want := range map[string]int{"at once": runners, "apart": 1} {
		all, err := st.Sightings(t.Context(), kind)
		require.NoError(t, err)
		assert.Equal(t, want, all["key"].Count, kind)
	}
}

func full(n int) store.Record {
	return store.Record{
		Provider: "prod", ID: fmt.Sprintf("sb-%d", n), TaskID: "t-1", AgentType: "claude", Owner: "me", Host: "here",
		State: sandbox.StateRunning, CreatedAt: day(n), UpdatedAt: day(n + 1), EndedAt: day(n + 2), Reason: "done",
	}
}

func records(t *testing.T, s Subject) {
	t.Helper()
	st := s.Store
	list := func(provider string) []store.Record {
		t.Helper()
		got, err := st.Records(t.Context(), provider)
		require.NoError(t, err)
		assert.NotNil(t, got)
		return got
	}
	assert.Empty(t, list("prod"))
	one, two, other := full(1), full(2), full(1)
	other.Provider, other.EndedAt, other.Reason = "test", time.Time{}, ""
	for _, r := range []store.Record{two, other, one} {
		require.NoError(t, st.PutRecord(t.Context(), r))
	}
	back := func(r store.Record) store.Record {
		r.CreatedAt, r.UpdatedAt, r.EndedAt = stored(r.CreatedAt), stored(r.UpdatedAt), stored(r.EndedAt)
		return r
	}
	assert.Equal(t, []store.Record{back(one), back(two)}, list("prod"), "oldest first")
	assert.Equal(t, []store.Record{back(one), back(other), back(two)}, list(""))
	assert.True(t, list("test")[0].EndedAt.IsZero())

	replaced := store.Record{Provider: "prod", ID: "sb-1", State: sandbox.StateProvisioning, CreatedAt: day(1)}
	require.NoError(t, st.PutRecord(t.Context(), replaced))
	assert.Equal(t, back(replaced), list("prod")[0], "all of it")

	end := func(state sandbox.State, reason string, at time.Time) store.Record {
		t.Helper()
		require.NoError(t, st.EndRecord(t.Context(), replaced.Ref(), state, reason, at))
		return list("prod")[0]
	}
	got := end(sandbox.StateStopped, "cleanup r-1", day(5))
	assert.Equal(t, []any{sandbox.StateStopped, "cleanup r-1", stored(day(5)), stored(day(5))}, []any{got.State, got.Reason, got.UpdatedAt, got.EndedAt})
	got = end(sandbox.StateTerminated, "deleted", day(6))
	assert.Equal(t, []any{sandbox.StateTerminated, "deleted", stored(day(6)), stored(day(5))}, []any{got.State, got.Reason, got.UpdatedAt, got.EndedAt})

	err := st.EndRecord(t.Context(), sandbox.Ref{Provider: "prod", ID: "sb-9"}, sandbox.StateTerminated, "", day(1))
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
	assert.Contains(t, err.Error(), "prod/sb-9")
	for _, bad := range []store.Record{{ID: "i"}, {Provider: "p"}} {
		assert.Equal(t, fault.KindUsage, fault.KindOf(st.PutRecord(t.Context(), bad)))
	}
	assert.Len(t, list(""), 3)
}

func runs(t *testing.T, s Subject) {
	t.Helper()
	st := s.Store
	list := func(limit int) (got []store.Run) {
		t.Helper()
		got, err := st.Runs(t.Context(), limit)
		require.NoError(t, err)
		assert.NotNil(t, got)
		return got
	}
	assert.Empty(t, list(0))
	started := store.Run{ID: "r-1", Verb: "cleanup", Layer: "age", Host: "here", Who: "cron", StartedAt: day(1), Acted: true}
	done := started
	done.EndedAt, done.Selected, done.ExitCode, done.Resumable = day(2), 3, 8, true
	done.Counts, done.Profiles = map[string]int{"verified": 2, "stuck": 1}, []string{"prod", "local"}
	back := func(r store.Run) store.Run {
		r.StartedAt, r.EndedAt = stored(r.StartedAt), stored(r.EndedAt)
		return r
	}
	require.NoError(t, st.PutRun(t.Context(), started))
	empty := back(started)
	empty.Counts, empty.Profiles = map[string]int{}, []string{}
	assert.Equal(t, []store.Run{empty}, list(0), "what was nil is empty")
	require.NoError(t, st.PutRun(t.Context(), done))
	assert.Equal(t, []store.Run{back(done)}, list(0), "one run, one row")

	for _, more := range []store.Run{{ID: "r-3", StartedAt: day(3)}, {ID: "r-2", StartedAt: day(2)}, {ID: "r-3b", StartedAt: day(3)}} {
		require.NoError(t, st.PutRun(t.Context(), more))
	}
	ids := func(list []store.Run) (ids []string) {
		for _, r := range list {
			ids = append(ids, r.ID)
		}
		return ids
	}
	assert.Equal(t, []string{"r-3b", "r-3", "r-2", "r-1"}, ids(list(0)), "newest first")
	assert.Equal(t, []string{"r-3b", "r-3"}, ids(list(2)))
	assert.Equal(t, []string{"r-3b", "r-3", "r-2", "r-1"}, ids(list(-1)))
	list(0)[3].Counts["verified"] = 99
	assert.Equal(t, 2, list(0)[3].Counts["verified"], "what was handed out changes nothing")
	assert.Equal(t, fault.KindUsage, fault.KindOf(st.PutRun(t.Context(), store.Run{Verb: "cleanup"})))
}

// odd shows that no name, however broken, keeps something from being noted.
func odd(t *testing.T, s Subject) {
	t.Helper()
	st := s.Store
	for i, name := range []string{"a\x00b", "\xff\xfe", "'; DROP TABLE sbx_record; --", "naïve 世界", "new\nline", `$1 %s ? \`} {
		lease, err := st.Acquire(t.Context(), name, name, time.Hour)
		require.NoError(t, err)
		_, err = st.Acquire(t.Context(), name, name, time.Hour)
		assert.Equal(t, fault.KindLocked, fault.KindOf(err))
		_, err = st.Renew(t.Context(), lease, time.Hour)
		require.NoError(t, err)
		require.NoError(t, st.Release(t.Context(), lease))
		_, err = st.Sight(t.Context(), name, name, day(1), 0)
		require.NoError(t, err)
		sighted, err := st.Sight(t.Context(), name, name, day(2), 0)
		require.NoError(t, err)
		assert.Equal(t, 2, sighted.Count)
		require.NoError(t, st.Forget(t.Context(), name, name))
		record := store.Record{Provider: name, ID: name, TaskID: name, AgentType: name, Owner: name, Host: name, Reason: name}
		require.NoError(t, st.PutRecord(t.Context(), record))
		require.NoError(t, st.EndRecord(t.Context(), record.Ref(), sandbox.StateTerminated, name, day(1)))
		mine, err := st.Records(t.Context(), name)
		require.NoError(t, err)
		assert.Len(t, mine, 1)
		require.NoError(t, st.PutRun(t.Context(), store.Run{ID: name, Verb: name, Layer: name, Host: name, Who: name, Counts: map[string]int{name: 1}, Profiles: []string{name}}))
		runs, err := st.Runs(t.Context(), 0)
		require.NoError(t, err)
		assert.Len(t, runs, i+1)
		oddTask(t, st, name)
		oddDoc(t, st, name)
	}
}

func oddTask(t *testing.T, st store.Store, name string) {
	t.Helper()
	kept := added(t, st, store.Task{ID: name, Key: name, Spec: name, State: name, Owner: name, Budget: name, Body: []byte(name)})
	found, isNew, err := st.AddTask(t.Context(), store.Task{ID: "another", Key: name})
	require.NoError(t, err)
	assert.False(t, isNew)
	assert.Equal(t, timeless(kept), timeless(found))
	list, err := st.Tasks(t.Context(), store.TaskQuery{Prefix: name, Limit: 2})
	require.NoError(t, err)
	assert.Len(t, list, 1)
	next := store.Task{ID: name, Version: 1, State: name, Owner: name, Budget: name, ReserveMB: 5, Body: []byte(name)}
	assert.Equal(t, kept.Body, swapped(t, st, next, 5).Body)
	next.Version, next.ReserveMB = 2, 6
	_, err = st.SwapTask(t.Context(), next, 5)
	require.ErrorIs(t, err, store.ErrBudget)
	found, err = st.AwaitTask(t.Context(), name, 1)
	require.NoError(t, err)
	assert.EqualValues(t, 2, found.Version)
}

func oddDoc(t *testing.T, st store.Store, name string) {
	t.Helper()
	kept, err := st.SwapDoc(t.Context(), store.Doc{Kind: name, Key: name, Body: []byte(name)})
	require.NoError(t, err)
	list, err := st.Docs(t.Context(), name)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, kept.Body, list[0].Body)
	require.NoError(t, st.DropDoc(t.Context(), list[0]))
}
