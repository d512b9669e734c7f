package cleanup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/journal"
	"sbx/internal/sandbox"
)

// TestAnUnreadableEntryHidesNoOther: each kind of entry, written by another version in a form that
// this one does not know. All others are read, the entry is named, and the run is not resumed: the
// entry may be a request, or a result that kept a sandbox on purpose.
func TestAnUnreadableEntryHidesNoOther(t *testing.T) {
	t.Parallel()
	ref := sandbox.Ref{Provider: "prod", ID: "-rf"}
	begin := cleanup.Begin{
		Actor: cleanup.Actor{Who: "ann"}, Verb: "cleanup",
		Plan:     cleanup.Plan{Items: []cleanup.Item{{Ref: ref}, {Ref: sandbox.Ref{Provider: "prod", ID: "open"}}}},
		Profiles: []cleanup.ShareRecord{{Profile: "prod", Complete: true}},
	}
	whole := []entry{
		{cleanup.EntryBegin, begin},
		{cleanup.EntryIntent, cleanup.Intent{Ref: ref}},
		{cleanup.EntryAnswer, cleanup.Answer{Ref: ref, Request: sandbox.EndRequest{Acknowledged: true}}},
		{cleanup.EntryResult, cleanup.Result{Ref: ref, Outcome: sandbox.OutcomeVerified}},
		{cleanup.EntryResume, cleanup.Actor{Who: "bob"}},
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
		h, err := cleanup.ReadRun(d, "r-1")
		require.NoError(t, err)
		scanned, _, err := cleanup.ScanRun(d, "r-1")
		require.NoError(t, err)
		acts, _, actsErr := cleanup.ReadActs(d, "r-1")
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
		assert.Equal(t, whole[i].kind != cleanup.EntryResult, h.Outcome(ref) == sandbox.OutcomeVerified, whole[i].kind)
		assert.Equal(t, whole[i].kind != cleanup.EntryBegin, h.Begin.Who == "ann")
	}
}
