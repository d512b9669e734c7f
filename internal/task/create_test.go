package task

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
)

// TestWhatACreateHasMade: only an error that proves it means that nothing was made; after
// any other a search follows.
func TestWhatACreateHasMade(t *testing.T) {
	t.Parallel()
	down := fault.New(fault.KindUnavailable, "HTTP 429").At("prod", "create")
	assert.False(t, provesNothingMade(down))
	assert.True(t, provesNothingMade(providers.NothingMade(down)))
	assert.True(t, provesNothingMade(fault.Placed(providers.NothingMade(down), "prod", "create")))
	assert.Equal(t, down.Error(), providers.NothingMade(down).Error(), "not a word more")
	assert.True(t, provesNothingMade(fault.New(fault.KindUsage, "no such template")))
	assert.False(t, provesNothingMade(fault.New(fault.KindUnknown, "?")))
}

// TestWhatWasFoundIsNotWrittenOff: two listings showed nothing, and meanwhile the maker has
// recorded its sandbox.
func TestWhatWasFoundIsNotWrittenOff(t *testing.T) {
	t.Parallel()
	now := Task{State: Running, Phase: Stopping, Verdict: Stopped, Attempts: []Attempt{{N: 1, Provider: "cloud"}}}
	require.NoError(t, now.Found(1, "b1"))
	require.ErrorIs(t, now.recordNothingMade(1), errUnchanged)
	assert.True(t, now.Attempts[0].GoneAt.IsZero(), "it is still to be ended")
	assert.Equal(t, Running, now.State)
}
