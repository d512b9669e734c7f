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

// TestActsOfASweep: what a sweep has ended is in its journal without a request, and is an act; what
// had ended before, or was never tried, is none.
func TestActsOfASweep(t *testing.T) {
	t.Parallel()
	disk := journal.Dir(t.TempDir())
	w, err := journal.Create(disk, "r-1", time.Now)
	require.NoError(t, err)
	ref := func(id string) sandbox.Ref { return sandbox.Ref{Provider: "local", ID: id} }
	begin := runs.Begin{Verb: "sweep", Plan: runs.Plan{Items: []runs.Item{{Ref: ref("a"), Reason: "its supervisor had died"}}}}
	require.NoError(t, w.Append(runs.EntryBegin, begin))
	for id, outcome := range map[string]sandbox.Outcome{"a": sandbox.OutcomeVerified, "b": sandbox.OutcomeAlreadyGone, "c": sandbox.OutcomeNotAttempted} {
		require.NoError(t, w.Append(runs.EntryResult, runs.Result{Ref: ref(id), Outcome: outcome}))
	}
	require.NoError(t, w.Close())
	acts, log, err := runs.ReadActs(disk, "r-1")
	require.NoError(t, err)
	assert.Equal(t, 4, log.Count)
	require.Len(t, acts, 1)
	assert.Equal(t, ref("a"), acts[0].Ref)
	assert.Equal(t, sandbox.OutcomeVerified, acts[0].Outcome)
	assert.Equal(t, "its supervisor had died", acts[0].Reason)
}
