package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/policy"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// TestConnection: what requests have met, by themselves, through a narrowed fleet, and until it changes.
func TestConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod", Latency: 2 * time.Second})
		p.Add(box("abcd", ""))
		p.SetSkew(45 * time.Second)
		f := of(p, stocked("other"))
		one, err := f.Narrow([]string{"prod"})
		require.NoError(t, err)
		assert.Equal(t, fleet.Connection{}, f.Connection("nobody"))
		assert.Zero(t, f.Connection("prod").CompleteAt)

		require.NoError(t, one.Collect(t.Context(), providers.Query{}).Err())
		c := f.Connection("prod")
		assert.Equal(t, time.Now(), c.CompleteAt)
		assert.Equal(t, 2*time.Second, c.Took)
		assert.Equal(t, 45*time.Second, c.Skew)
		assert.Equal(t, fleet.Connection{}, f.Connection("other"))

		one.Collect(t.Context(), providers.Query{States: []sandbox.State{sandbox.StateRunning}})
		assert.Equal(t, c, f.Connection("prod"), "a part of a listing completes nothing")
		ended, stop := context.WithCancel(t.Context())
		stop()
		one.Collect(ended, providers.Query{})
		assert.Equal(t, c, f.Connection("prod"), "that the caller went away says nothing of the provider")

		p.Break(fake.Fault{Op: fake.OpList, Err: planted(fault.KindUnavailable)})
		require.Error(t, one.Collect(t.Context(), providers.Query{}).Err())
		broken := f.Connection("prod")
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(broken.Err))
		assert.Equal(t, c.CompleteAt, broken.CompleteAt, "the last complete one stays")
		p.Mend()
		require.NoError(t, one.Collect(t.Context(), providers.Query{}).Err())
		require.NoError(t, f.Connection("prod").Err)
	})
}

// TestConnectionOfAnOpenBreaker: until when no call is made; what one sandbox answers tells nothing.
func TestConnectionOfAnOpenBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := stocked("prod", "abcd")
		f := of(p)
		_, err := f.Get(t.Context(), sandbox.Ref{Provider: "prod", ID: "nobody"})
		require.Error(t, err)
		require.NoError(t, f.Connection("prod").Err)
		p.Break(fake.Fault{Op: fake.OpGet, Err: planted(fault.KindUnavailable)})
		for range policy.OpensAfter {
			assert.Zero(t, f.Connection("prod").OpenUntil)
			_, err := f.Get(t.Context(), abcd())
			require.Error(t, err)
		}
		opened := time.Now()
		advance(t, 10*time.Second)
		c := f.Connection("prod")
		assert.Equal(t, opened.Add(policy.StaysOpen), c.OpenUntil)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(c.Err))
		advance(t, policy.StaysOpen)
		assert.Zero(t, f.Connection("prod").OpenUntil, "the next call is let through")
		p.Mend()
		_, err = f.Get(t.Context(), abcd())
		require.NoError(t, err)
		require.NoError(t, f.Connection("prod").Err)
	})
}
