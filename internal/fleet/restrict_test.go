package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
	"sbx/internal/triage"
)

func TestARestrictedFleetListsCountsAndFindsNothingElse(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "local"})
	for _, id := range []string{"mine-1", "mine-2", "other-1"} {
		p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: id, State: sandbox.StateRunning, Labels: map[string]string{"run": id[:4]}}})
	}
	all := fleet.New([]fleet.Member{{Provider: p}}, fleet.Options{})
	f := all.Restrict(func(s sandbox.Sandbox) bool { return s.Labels["run"] == "mine" }, triage.DefaultThresholds())

	l := f.Collect(t.Context(), providers.Query{All: true})
	require.NoError(t, l.Err())
	assert.Len(t, l.Items, 2)
	stats := f.Stats(t.Context())
	require.NoError(t, stats[0].Err)
	require.NotNil(t, stats[0].Stats.Active)
	assert.EqualValues(t, 2, *stats[0].Stats.Active)
	other := sandbox.Ref{Provider: "local", ID: "other-1"}
	_, err := f.Get(t.Context(), other)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
	for _, word := range []string{"local/other-1", "other-1"} {
		_, err = f.Find(t.Context(), []string{word}, fleet.FindOptions{})
		assert.Equal(t, fault.KindNotFound, fault.KindOf(err), word)
	}
	_, err = f.Get(t.Context(), sandbox.Ref{Provider: "local", ID: "mine-1"})
	require.NoError(t, err)
	_, err = all.Get(t.Context(), other)
	require.NoError(t, err, "the fleet itself is as it was")
}
