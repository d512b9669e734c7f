package e2b_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/wiretest"
)

// TestAnotherSandboxIsNeitherReadNorAsked: the API answers GET with the record of another sandbox.
func TestAnotherSandboxIsNeitherReadNorAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := e2btest.New(t, e2btest.Options{})
		id, other := f.Add(e2btest.Seed{}), f.Add(e2btest.Seed{})
		f.Break(wiretest.Fault{Route: "GET /sandboxes/{id}", Contains: id, Other: other})
		p := dialled(t, f)
		_, err := p.Get(t.Context(), id)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
		require.ErrorContains(t, err, other, "the answer was about this one")
		err = p.Terminate(t.Context(), id, providers.TerminateOptions{})
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
		_, err = p.Probe(t.Context(), id)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
		assert.True(t, f.VMRuns(id))
		assert.True(t, f.VMRuns(other))
	})
}

func TestBothSpellingsOfAnOldIDAreOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := dialled(t, e2btest.New(t, e2btest.Options{}))
		for pair, same := range map[[2]string]bool{
			{"iabc", "iabc"}: true, {"iabc", "iabc-x1"}: true, {"iabc-x1", "iabc"}: true,
			{"iabc", "iabd"}: false, {"iabc-x1", "iabc-x2"}: false, {"iabc", "iabcd-x1"}: false, {"iabc", ""}: false,
		} {
			assert.Equal(t, same, c.SameID(pair[0], pair[1]), "%v", pair)
		}
	})
}

// TestADeadEnvdIsAboutOneSandbox: a 502 of the edge concerns one sandbox, a 502 of the API the
// provider.
func TestADeadEnvdIsAboutOneSandbox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := e2btest.New(t, e2btest.Options{})
		id := f.Add(e2btest.Seed{})
		f.CloseEnvd(id)
		c := dialled(t, f)
		_, err := c.Exec(t.Context(), id, providers.Command{Args: []string{"true"}})
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
		assert.True(t, fault.AboutOneSandbox(err), "%v", err)
		f.Break(wiretest.Fault{Route: "GET /sandboxes/{id}", Status: 503})
		_, err = c.Get(t.Context(), id)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
		assert.False(t, fault.AboutOneSandbox(err), "%v", err)
	})
}
