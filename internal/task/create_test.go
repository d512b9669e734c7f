package task

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
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

// TestARefusedCreateBlamesNoProgram: a request that was refused (400, 402) started no program, and a folder that is
// missing inside is no failure of the infrastructure: it would be missing in the next sandbox too.
func TestARefusedCreateBlamesNoProgram(t *testing.T) {
	t.Parallel()
	after := func(err error) Retry {
		one := pending()
		one.Attempts = []Attempt{{N: 1}}
		one.Attempts[0].recordEnd(noon(), Ended{Exit: exitWithoutRun(err)})
		return one.Next(0)
	}
	for _, kind := range []fault.Kind{fault.KindUsage, fault.KindRefused, fault.KindUnsupported, fault.KindNotFound} {
		got := after(fault.New(kind, "HTTP 402: payment required").At("prod", "create"))
		assert.Equal(t, Retry{Why: "its sandbox was not created: the request was refused"}, got, kind)
	}
	conflict := fault.New(fault.KindUnavailable, "HTTP 409: conflict").At("prod", "create") // which a later attempt may not meet
	assert.Equal(t, sandbox.ClassInfra, exitWithoutRun(conflict).Class)
	missing := fault.Placed(providers.NoWorkdir(fault.New(fault.KindLauncher, "there is no folder %q in it", "/missing")), "prod", "create")
	assert.Equal(t, sandbox.ClassEnvironment, exitWithoutRun(missing).Class)
	assert.False(t, after(missing).Again)
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
