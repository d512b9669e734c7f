package cli

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// TestRecords: one reading serves many looks, and what cannot be read is unknown.
func TestRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opened, read := 0, 0
	open := func(bool) (store.Store, error) {
		opened++
		return store.New(store.Options{StateDir: dir, Now: time.Now})
	}
	recent := func(context.Context) []runs.History {
		read++
		h := runs.History{StartedAt: time.Now(), Conclusion: &runs.Conclusion{}}
		h.Begin.Profiles = []runs.Profile{{Profile: "prod"}}
		return []runs.History{h}
	}
	st, err := open(true)
	require.NoError(t, err)
	over := task.New("t-over", "", task.Spec{Provider: "prod", Command: []string{"true"}, Attempts: 1}, task.Owner{Host: "h", PID: 1, Who: "w"}, time.Now())
	_, _, err = task.Ledger{Store: st}.Add(t.Context(), over)
	require.NoError(t, err)
	_, err = task.Ledger{Store: st}.Change(t.Context(), "t-over", func(n *task.Task) error { n.State = task.Completed; return nil })
	require.NoError(t, err)
	require.NoError(t, st.Close())

	opened = 0
	r := &fleetHistory{open: open, runs: recent, now: time.Now, limits: defaultLimits}
	mine := sandbox.Sandbox{Provider: "prod", ID: "x", TaskID: "t-over"}
	for range 3 {
		assert.Equal(t, sandbox.True, r.OfSandbox(t.Context(), mine).Finished)
		assert.Equal(t, new(int64(1)), r.OfProfile(t.Context(), "prod").CleanupFailures)
		assert.Equal(t, fleet.SandboxHistory{}, r.OfSandbox(t.Context(), sandbox.Sandbox{Provider: "prod", ID: "y", TaskID: "t-foreign"}))
	}
	assert.Equal(t, []int{3, 1}, []int{opened, read}, "the list of tasks, the one that it lacks, the samples, and the runs: each once")

	broken := &fleetHistory{
		open: func(bool) (store.Store, error) { return nil, errors.New("the disk is gone") },
		runs: func(context.Context) []runs.History { return nil }, now: time.Now,
	}
	assert.Equal(t, fleet.SandboxHistory{}, broken.OfSandbox(t.Context(), mine))
	assert.Equal(t, triage.FleetSignals{}, broken.OfProfile(t.Context(), "prod"))
}

// TestEarlierCountsAreReadAnew: a verb that goes on sees a count that has fallen since its start.
func TestEarlierCountsAreReadAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, seen := countedRecords(t, time.Minute)
		seen(30)
		assert.Len(t, r.OfProfile(t.Context(), "prod").History, 1)
		seen(3)
		got := r.OfProfile(t.Context(), "prod").History
		require.Len(t, got, 2)
		assert.EqualValues(t, 3, got[1].Active)
	})
}

// countedRecords are records over a store of their own. see counts the active ones of prod there, and then some time
// passes.
func countedRecords(t *testing.T, pause time.Duration) (r *fleetHistory, see func(active int64)) {
	t.Helper()
	st := store.Memory(time.Now)
	r = &fleetHistory{
		open: func(bool) (store.Store, error) { return st, nil },
		runs: func(context.Context) []runs.History { return nil }, now: time.Now, limits: defaultLimits,
	}
	return r, func(active int64) {
		recorder := history.NewRecorder(time.Now)
		recorder.AddCounts("prod", map[sandbox.State]int64{sandbox.StateRunning: active})
		require.NoError(t, recorder.Flush(t.Context(), st))
		time.Sleep(pause)
	}
}

func defaultLimits(sandbox.Sandbox) triage.Thresholds { return triage.DefaultThresholds() }

// TestTheSamplesOfDaysAreRead, and not where a recent count is within every limit.
func TestTheSamplesOfDaysAreRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, see := countedRecords(t, time.Hour)
		for range 48 {
			assert.Zero(t, r.OfProfile(t.Context(), "other").OverFor)
			see(236)
		}
		assert.Equal(t, triage.OverFor{Active: 48 * time.Hour, Normal: 48 * time.Hour, Escalate: 48 * time.Hour}, r.OfProfile(t.Context(), "prod").OverFor)
		see(4)
		assert.Zero(t, r.OfProfile(t.Context(), "prod").OverFor)
	})
}

// TestSinceWhenASandboxIsEnding: of a provider that has no time for it, by the complete listings since, one after
// another. One that did not show it so begins anew, and a look that listed nothing says nothing.
func TestSinceWhenASandboxIsEnding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := store.Memory(time.Now)
		r := &fleetHistory{open: func(bool) (store.Store, error) { return st, nil }, now: time.Now, limits: defaultLimits}
		since := func() time.Time { return r.EndingSince(t.Context(), sandbox.Ref{Provider: "prod", ID: "x"}) }
		listed := func(ending ...string) time.Time {
			recorder := history.NewRecorder(time.Now)
			recorder.AddCounts("prod", map[sandbox.State]int64{sandbox.StateTerminating: int64(len(ending))}, ending...)
			require.NoError(t, recorder.Flush(t.Context(), st))
			time.Sleep(time.Minute)
			return time.Now().Add(-time.Minute)
		}
		assert.Zero(t, since())
		listed("x")
		listed("y")
		first := listed("y", "x")
		used := history.NewRecorder(time.Now)
		used.AddUsage(sandbox.Ref{Provider: "prod", ID: "z"}, sandbox.Usage{At: time.Now()})
		require.NoError(t, used.Flush(t.Context(), st))
		time.Sleep(time.Minute)
		listed("x")
		assert.WithinDuration(t, first, since(), 0)
		listed()
		assert.Zero(t, since())
	})
}

// TestWhatIsLostToABusyStoreIsSaid: what an earlier look has seen is not used, though it is on record.
func TestWhatIsLostToABusyStoreIsSaid(t *testing.T) {
	t.Parallel()
	for kind, told := range map[fault.Kind]bool{fault.KindLocked: true, fault.KindUnavailable: false} {
		var warned []string
		r := &fleetHistory{
			open: func(bool) (store.Store, error) { return nil, fault.New(kind, "no") },
			runs: func(context.Context) []runs.History { return nil },
			warn: func(what string, _ error) { warned = append(warned, what) }, now: time.Now,
		}
		r.OfProfile(t.Context(), "prod")
		if !told {
			assert.Empty(t, warned)
			continue
		}
		assert.Contains(t, warned, "what earlier looks have seen is not used")
	}
}

// TestAWatchStoresLaterWhatABusyStoreRefused, and says nothing then.
func TestAWatchStoresLaterWhatABusyStoreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, busy := store.Memory(time.Now), true
		r := &fleetHistory{
			open: func(bool) (store.Store, error) {
				if busy {
					return nil, fault.New(fault.KindLocked, "no")
				}
				return st, nil
			},
			warn: func(what string, err error) { assert.Fail(t, what, err) }, now: time.Now, recorder: history.NewRecorder(time.Now),
		}
		for range 2 {
			r.ListingSeen("prod", map[sandbox.State]int64{sandbox.StateRunning: 1}, nil, nil)
			<-time.After(flushEvery)
		}
		r.flushing.Wait()
		busy = false
		r.Flush()
		looks, err := history.Looks(t.Context(), st, "prod", time.Now().Add(-time.Hour))
		require.NoError(t, err)
		assert.Len(t, looks, 1)
	})
}

// TestALookThatCannotBeKeptIsToldWhereTheStoreIsBusy: it may be the last that anybody sees of a sandbox. What is wrong
// with the store for good is told by the verbs that need it.
func TestALookThatCannotBeKeptIsToldWhereTheStoreIsBusy(t *testing.T) {
	t.Parallel()
	for kind, told := range map[fault.Kind]bool{fault.KindLocked: true, fault.KindUnavailable: false, fault.KindRefused: false} {
		var warned []error
		r := &fleetHistory{
			open: func(bool) (store.Store, error) { return nil, fault.New(kind, "no") },
			warn: func(_ string, err error) { warned = append(warned, err) }, now: time.Now, recorder: history.NewRecorder(time.Now),
		}
		r.ListingSeen("prod", map[sandbox.State]int64{sandbox.StateRunning: 1}, nil, nil)
		r.Flush()
		assert.Equal(t, told, len(warned) == 1, kind)
	}
}
