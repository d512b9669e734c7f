package cli

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/policy"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// TestAProbeThatRunsClosesTheBreaker: a program may run for hours, and nobody waits for
// its end to know that the place works.
func TestAProbeThatRunsClosesTheBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(store.Memory(time.Now), "ann", func(text string) { t.Error(text) })
		for range policy.SharedFaults {
			leave, err := b.Allow(t.Context(), "e2b")
			require.NoError(t, err)
			leave.Started(t.Context()) // which counts for nothing where nobody probes
			leave.Done(t.Context(), sandbox.ClassInfra)
		}
		_, err := b.Allow(t.Context(), "e2b")
		require.Equal(t, fault.KindRefused, fault.KindOf(err))
		<-time.After(policy.SharedOpen)
		probe, err := b.Allow(t.Context(), "e2b")
		require.NoError(t, err)
		_, err = b.Allow(t.Context(), "e2b")
		require.Equal(t, fault.KindRefused, fault.KindOf(err), "one probes")
		probe.Started(t.Context())
		_, err = b.Allow(t.Context(), "e2b")
		require.NoError(t, err)
		probe.Done(t.Context(), sandbox.ClassInfra)
		_, err = b.Allow(t.Context(), "e2b")
		assert.NoError(t, err, "what comes later is one fault among others")
	})
}
