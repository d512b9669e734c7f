package store_test

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

func testSeenCounts(t *testing.T, s subject) {
	t.Helper()
	st := s.Store
	start := exampleTime(1)
	see := func(after, apart time.Duration, count int, last time.Duration) {
		t.Helper()
		got, err := st.CountSeen(t.Context(), "orphan", "prod/a", start.Add(after), apart)
		require.NoError(t, err)
		assert.Equal(t, store.SeenCount{First: storedTime(start), Last: storedTime(start.Add(last)), Count: count}, got)
	}
	see(0, time.Minute, 1, 0)
	see(time.Minute-time.Microsecond, time.Minute, 1, 0)
	see(time.Minute, time.Minute, 2, time.Minute)
	see(2*time.Minute-time.Microsecond, time.Minute, 2, time.Minute)
	see(time.Second, 0, 2, time.Minute) // an observation by a clock that went back does not count
	see(time.Minute, 0, 3, time.Minute)
	see(time.Hour, time.Minute, 4, time.Hour)

	_, err := st.CountSeen(t.Context(), "orphan", "prod/b", start, time.Minute)
	require.NoError(t, err)
	_, err = st.CountSeen(t.Context(), "first_seen", "prod/a", start, time.Minute)
	require.NoError(t, err)
	all, err := st.SeenCounts(t.Context(), "orphan")
	require.NoError(t, err)
	assert.Equal(t, map[string]store.SeenCount{
		"prod/a": {First: storedTime(start), Last: storedTime(start.Add(time.Hour)), Count: 4},
		"prod/b": {First: storedTime(start), Last: storedTime(start), Count: 1},
	}, all)

	require.NoError(t, st.Forget(t.Context(), "orphan", "prod/a"))
	require.NoError(t, st.Forget(t.Context(), "orphan", "prod/a"), "twice")
	all, err = st.SeenCounts(t.Context(), "orphan")
	require.NoError(t, err)
	assert.Len(t, all, 1)
	all, err = st.SeenCounts(t.Context(), "nothing")
	require.NoError(t, err)
	assert.NotNil(t, all)
	assert.Empty(t, all)
	testConcurrentSeenCounts(t, st)
}

// testConcurrentSeenCounts shows that no observation is lost or counted twice.
func testConcurrentSeenCounts(t *testing.T, st store.Store) {
	t.Helper()
	const runners = 16
	var wg sync.WaitGroup
	for range runners {
		wg.Go(func() {
			_, errAtOnce := st.CountSeen(t.Context(), "at once", "key", exampleTime(1), 0)
			_, errApart := st.CountSeen(t.Context(), "apart", "key", exampleTime(1), time.Minute)
			if err := errors.Join(errAtOnce, errApart); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for kind, want := range map[string]int{"at once": runners, "apart": 1} {
		all, err := st.SeenCounts(t.Context(), kind)
		require.NoError(t, err)
		assert.Equal(t, want, all["key"].Count, kind)
	}
}

func fullRecord(n int) store.Record {
	return store.Record{
		Provider: "prod", ID: fmt.Sprintf("sb-%d", n), TaskID: "t-1", AgentType: "claude", Owner: "me", Host: "here",
		State: sandbox.StateRunning, CreatedAt: exampleTime(n), UpdatedAt: exampleTime(n + 1), EndedAt: exampleTime(n + 2), Reason: "done",
	}
}

func testRecords(t *testing.T, s subject) {
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
	one, two, other := fullRecord(1), fullRecord(2), fullRecord(1)
	other.Provider, other.EndedAt, other.Reason = "test", time.Time{}, ""
	for _, r := range []store.Record{two, other, one} {
		require.NoError(t, st.PutRecord(t.Context(), r))
	}
	back := func(r store.Record) store.Record {
		r.CreatedAt, r.UpdatedAt, r.EndedAt = storedTime(r.CreatedAt), storedTime(r.UpdatedAt), storedTime(r.EndedAt)
		return r
	}
	assert.Equal(t, []store.Record{back(one), back(two)}, list("prod"), "oldest first")
	assert.Equal(t, []store.Record{back(one), back(other), back(two)}, list(""))
	assert.True(t, list("test")[0].EndedAt.IsZero())

	replaced := store.Record{Provider: "prod", ID: "sb-1", State: sandbox.StateProvisioning, CreatedAt: exampleTime(1)}
	require.NoError(t, st.PutRecord(t.Context(), replaced))
	assert.Equal(t, back(replaced), list("prod")[0], "all of it")

	end := func(state sandbox.State, reason string, at time.Time) store.Record {
		t.Helper()
		require.NoError(t, st.EndRecord(t.Context(), replaced.Ref(), state, reason, at))
		return list("prod")[0]
	}
	got := end(sandbox.StateStopped, "cleanup r-1", exampleTime(5))
	assert.Equal(t, []any{sandbox.StateStopped, "cleanup r-1", storedTime(exampleTime(5)), storedTime(exampleTime(5))}, []any{got.State, got.Reason, got.UpdatedAt, got.EndedAt})
	got = end(sandbox.StateTerminated, "deleted", exampleTime(6))
	assert.Equal(t, []any{sandbox.StateTerminated, "deleted", storedTime(exampleTime(6)), storedTime(exampleTime(5))}, []any{got.State, got.Reason, got.UpdatedAt, got.EndedAt})

	err := st.EndRecord(t.Context(), sandbox.Ref{Provider: "prod", ID: "sb-9"}, sandbox.StateTerminated, "", exampleTime(1))
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
	assert.Contains(t, err.Error(), "prod/sb-9")
	for _, bad := range []store.Record{{ID: "i"}, {Provider: "p"}} {
		assert.Equal(t, fault.KindUsage, fault.KindOf(st.PutRecord(t.Context(), bad)))
	}
	assert.Len(t, list(""), 3)
}

func testRuns(t *testing.T, s subject) {
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
	started := store.Run{ID: "r-1", Verb: "cleanup", Layer: "age", Host: "here", Who: "cron", StartedAt: exampleTime(1), Acted: true}
	done := started
	done.EndedAt, done.Selected, done.ExitCode, done.Resumable = exampleTime(2), 3, 8, true
	done.Counts, done.Profiles = map[string]int{"verified": 2, "stuck": 1}, []string{"prod", "local"}
	back := func(r store.Run) store.Run {
		r.StartedAt, r.EndedAt = storedTime(r.StartedAt), storedTime(r.EndedAt)
		return r
	}
	require.NoError(t, st.PutRun(t.Context(), started))
	empty := back(started)
	empty.Counts, empty.Profiles = map[string]int{}, []string{}
	assert.Equal(t, []store.Run{empty}, list(0), "what was nil is empty")
	require.NoError(t, st.PutRun(t.Context(), done))
	assert.Equal(t, []store.Run{back(done)}, list(0), "one run, one row")

	for _, more := range []store.Run{{ID: "r-3", StartedAt: exampleTime(3)}, {ID: "r-2", StartedAt: exampleTime(2)}, {ID: "r-3b", StartedAt: exampleTime(3)}} {
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

// testOddTexts shows that any name, however broken, can be recorded.
func testOddTexts(t *testing.T, s subject) {
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
		_, err = st.CountSeen(t.Context(), name, name, exampleTime(1), 0)
		require.NoError(t, err)
		sighted, err := st.CountSeen(t.Context(), name, name, exampleTime(2), 0)
		require.NoError(t, err)
		assert.Equal(t, 2, sighted.Count)
		require.NoError(t, st.Forget(t.Context(), name, name))
		record := store.Record{Provider: name, ID: name, TaskID: name, AgentType: name, Owner: name, Host: name, Reason: name}
		require.NoError(t, st.PutRecord(t.Context(), record))
		require.NoError(t, st.EndRecord(t.Context(), record.Ref(), sandbox.StateTerminated, name, exampleTime(1)))
		mine, err := st.Records(t.Context(), name)
		require.NoError(t, err)
		assert.Len(t, mine, 1)
		require.NoError(t, st.PutRun(t.Context(), store.Run{ID: name, Verb: name, Layer: name, Host: name, Who: name, Counts: map[string]int{name: 1}, Profiles: []string{name}}))
		runs, err := st.Runs(t.Context(), 0)
		require.NoError(t, err)
		assert.Len(t, runs, i+1)
		testOddTask(t, st, name)
		testOddDoc(t, st, name)
	}
}

func testOddTask(t *testing.T, st store.Store, name string) {
	t.Helper()
	kept := mustAdd(t, st, store.Task{ID: name, Key: name, Spec: name, State: name, Owner: name, Budget: name, Body: []byte(name)})
	found, isNew, err := st.AddTask(t.Context(), store.Task{ID: "another", Key: name})
	require.NoError(t, err)
	assert.False(t, isNew)
	assert.Equal(t, withoutTimes(kept), withoutTimes(found))
	list, err := st.Tasks(t.Context(), store.TaskQuery{Prefix: name, Limit: 2})
	require.NoError(t, err)
	assert.Len(t, list, 1)
	next := store.Task{ID: name, Version: 1, State: name, Owner: name, Budget: name, ReserveMB: 5, Body: []byte(name)}
	assert.Equal(t, kept.Body, mustSwap(t, st, next, 5).Body)
	next.Version, next.ReserveMB = 2, 6
	_, err = st.SwapTask(t.Context(), next, 5)
	require.ErrorIs(t, err, store.ErrBudget)
	found, err = st.AwaitTask(t.Context(), name, 1)
	require.NoError(t, err)
	assert.EqualValues(t, 2, found.Version)
}

func testOddDoc(t *testing.T, st store.Store, name string) {
	t.Helper()
	kept, err := st.SwapDoc(t.Context(), store.Doc{Kind: name, Key: name, Body: []byte(name)})
	require.NoError(t, err)
	list, err := st.Docs(t.Context(), name)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, kept.Body, list[0].Body)
	require.NoError(t, st.DropDoc(t.Context(), list[0]))
}
