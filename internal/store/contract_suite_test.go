package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
)

// subject is an empty store under test, with a clock of its own.
type subject struct {
	store.Store
	// Again opens the stored data a second time; nil = that is impossible.
	Again func(t *testing.T) store.Store
	// Pass lets time pass for the leases of the store.
	Pass func(t *testing.T, d time.Duration)
	// TTL is longer than a few calls take; a test lets it pass.
	TTL time.Duration
}

// runContract runs the contract that memory, SQLite and Postgres keep, each part on a subject of fresh.
func runContract(t *testing.T, fresh func(t *testing.T) subject) {
	t.Helper()
	for name, part := range map[string]func(*testing.T, subject){
		"Lease": testLeases, "Race": testLeaseRaces, "Sighting": testSeenCounts, "Record": testRecords, "Run": testRuns, "Again": testReopen, "Ended": testEndedContext, "Text": testOddTexts,
		"Task": testTasks, "TaskList": testTaskLists, "Swap": testSwaps, "SwapRace": testSwapRaces, "AddRace": testAddRaces,
		"Budget": testBudgets, "BudgetRace": testBudgetRaces, "Await": testAwaits, "Doc": testDocs, "DocRace": testDocRaces,
		"Sample": testSamples, "Act": testActs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t, fresh(t))
		})
	}
}

// exampleTime is a time with more digits than a store keeps.
func exampleTime(n int) time.Time {
	return time.Date(2026, 11, n, 12, 30, 15, 123456789, time.FixedZone("CET", 3600))
}

func storedTime(at time.Time) time.Time { return at.UTC().Truncate(time.Microsecond) }

// testEndedContext shows that the end of the context is the error.
func testEndedContext(t *testing.T, s subject) {
	t.Helper()
	st := s.Store
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, errAcquire := st.Acquire(ctx, "name", "me", time.Hour)
	_, errRenew := st.Renew(ctx, store.Lease{Name: "name", Holder: "me"}, time.Hour)
	_, errSight := st.CountSeen(ctx, "kind", "key", exampleTime(1), 0)
	_, errSeenCounts := st.SeenCounts(ctx, "kind")
	_, errRecords := st.Records(ctx, "")
	_, errRuns := st.Runs(ctx, 0)
	_, _, errAdd := st.AddTask(ctx, store.Task{ID: "t"})
	_, errTask := st.Task(ctx, "t")
	_, errTasks := st.Tasks(ctx, store.TaskQuery{})
	_, errSwap := st.SwapTask(ctx, store.Task{ID: "t"}, 0)
	_, errAwait := st.AwaitTask(ctx, "t", 0)
	_, errDoc := st.Doc(ctx, "kind", "key")
	_, errDocs := st.Docs(ctx, "kind")
	_, errPut := st.SwapDoc(ctx, store.Doc{Kind: "kind", Key: "key"})
	_, errSamples := st.Samples(ctx, store.SampleQuery{Profile: "p"})
	for _, err := range []error{
		errSamples, st.AddSamples(ctx, []store.Sample{{Profile: "p", At: exampleTime(1)}}), st.ThinSamples(ctx, "p", exampleTime(1), store.SampleRules{Keep: 1, Fine: 1, Every: time.Minute, Bytes: 1}),
		errAdd, errTask, errTasks, errSwap, errAwait, errDoc, errDocs, errPut, st.DropDoc(ctx, store.Doc{Kind: "kind", Key: "key"}),
		errAcquire, errRenew, errSight, errSeenCounts, errRecords, errRuns,
		st.Release(ctx, store.Lease{Name: "name", Holder: "me"}), st.Forget(ctx, "kind", "key"),
		st.PutRecord(ctx, store.Record{Provider: "p", ID: "i"}), st.PutRun(ctx, store.Run{ID: "r"}),
	} {
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, fault.KindCanceled, fault.KindOf(err))
	}
	lease, err := st.Acquire(t.Context(), "name", "me", time.Hour)
	require.NoError(t, err, "what was canceled took nothing")
	assert.EqualValues(t, 1, lease.Fence)
	mustAdd(t, st, store.Task{ID: "t"})
}

// testReopen shows that everything outlives the handle that wrote it.
func testReopen(t *testing.T, s subject) {
	t.Helper()
	if s.Again == nil {
		t.Skip("this store ends with its process")
	}
	first := s.Store
	lease, err := first.Acquire(t.Context(), "name", "me", time.Hour)
	require.NoError(t, err)
	_, err = first.CountSeen(t.Context(), "kind", "key", exampleTime(1), 0)
	require.NoError(t, err)
	require.NoError(t, first.PutRecord(t.Context(), store.Record{Provider: "p", ID: "i"}))
	require.NoError(t, first.PutRun(t.Context(), store.Run{ID: "r"}))
	kept := mustAdd(t, first, exampleTask(1))
	doc, err := first.SwapDoc(t.Context(), store.Doc{Kind: "kind", Key: "key"})
	require.NoError(t, err)

	second := s.Again(t)
	require.NoError(t, first.Close())
	require.NoError(t, first.Close(), "twice")
	_, err = first.Runs(t.Context(), 0)
	require.ErrorContains(t, err, "closed")
	_, err = first.AwaitTask(t.Context(), kept.ID, kept.Version)
	require.ErrorContains(t, err, "closed")

	_, err = second.Acquire(t.Context(), "name", "you", time.Hour)
	assert.Equal(t, fault.KindLocked, fault.KindOf(err), "a lease outlives the handle, so that a crash gives nothing away")
	require.NoError(t, second.Release(t.Context(), lease))
	seen, err := second.SeenCounts(t.Context(), "kind")
	require.NoError(t, err)
	assert.Len(t, seen, 1)
	records, err := second.Records(t.Context(), "p")
	require.NoError(t, err)
	assert.Len(t, records, 1)
	runs, err := second.Runs(t.Context(), 1)
	require.NoError(t, err)
	assert.Len(t, runs, 1)
	mustSwap(t, second, kept, 0)
	require.NoError(t, second.DropDoc(t.Context(), doc))
}
