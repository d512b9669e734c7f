package cleanup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/journal"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// TestAnUnreadableEntryHidesNoOther: each kind of entry, written by another version in a form that
// this one does not know. All others are read, the entry is named, and the run is not resumed: the
// entry may be a request, or a result that kept a sandbox on purpose.
func TestAnUnreadableEntryHidesNoOther(t *testing.T) {
	t.Parallel()
	ref := sandbox.Ref{Provider: "prod", ID: "-rf"}
	begin := runs.Begin{
		Actor: runs.Actor{Who: "ann"}, Verb: "cleanup",
		Plan:     runs.Plan{Items: []runs.Item{{Ref: ref}, {Ref: sandbox.Ref{Provider: "prod", ID: "open"}}}},
		Profiles: []runs.Profile{{Profile: "prod", Complete: true}},
	}
	whole := []entry{
		{runs.EntryBegin, begin},
		{runs.EntryIntent, runs.Intent{Ref: ref}},
		{runs.EntryAnswer, runs.Answer{Ref: ref, Request: sandbox.EndRequest{Acknowledged: true}}},
		{runs.EntryResult, runs.Result{Ref: ref, Outcome: sandbox.OutcomeVerified}},
		{runs.EntryResume, runs.Actor{Who: "bob"}},
	}
	for i := -1; i < len(whole); i++ {
		d := journal.Dir(t.TempDir())
		w, err := journal.Create(d, "r-1", time.Now)
		require.NoError(t, err)
		for at, e := range whole {
			if at == i {
				e.data = []int{1}
			}
			require.NoError(t, w.Append(e.kind, e.data))
		}
		require.NoError(t, w.Close())
		h, err := runs.ReadRun(d, "r-1")
		require.NoError(t, err)
		scanned, _, err := runs.ScanRun(d, "r-1")
		require.NoError(t, err)
		acts, _, actsErr := runs.ReadActs(d, "r-1")
		require.Len(t, acts, 1)
		assert.Equal(t, ref, acts[0].Ref)
		if i < 0 {
			require.NoError(t, h.Unreadable.Error("r-1"))
			require.NoError(t, actsErr)
			assert.True(t, h.Resumable(), "box `open` is left")
			continue
		}
		for _, err := range []error{h.Unreadable.Error("r-1"), scanned.Unreadable.Error("r-1"), actsErr} {
			require.ErrorContains(t, err, "1 entry of run r-1 cannot be read: entry ")
			require.ErrorContains(t, err, "("+whole[i].kind+")")
		}
		assert.False(t, h.Resumable(), whole[i].kind)
		assert.Equal(t, whole[i].kind != runs.EntryResult, h.Outcome(ref) == sandbox.OutcomeVerified, whole[i].kind)
		assert.Equal(t, whole[i].kind != runs.EntryBegin, h.Begin.Who == "ann")
	}
}
