package daytona_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/daytonatest"
)

// TestWhatWorksIsNotStopped: reads are no activity, so by default the service would stop a sandbox
// with a working program after 15 minutes.
func TestWhatWorksIsNotStopped(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{0, 5 * time.Minute, time.Hour, 90 * time.Second, 24 * time.Hour} {
		t.Run(ttl.String(), func(t *testing.T) {
			t.Parallel()
			var passed atomic.Int64
			_, c := fresh(t, daytonatest.Options{Now: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }})
			made, err := c.Create(t.Context(), sandbox.Spec{TTL: ttl})
			require.NoError(t, err)
			life := ttl
			if life == 0 {
				life = 10 * time.Minute
			}
			for range 9 {
				passed.Add(int64(life / 10))
				got, err := c.Get(t.Context(), made.ID)
				require.NoError(t, err)
				require.Equal(t, sandbox.StateRunning, got.State, "stopped after %s of %s", time.Duration(passed.Load()), life)
				_, err = c.Probe(t.Context(), made.ID)
				require.NoError(t, err)
			}
			passed.Add(int64(life/10 + 2*time.Minute))
			_, err = c.Get(t.Context(), made.ID)
			assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "its life is over: %v", err)
		})
	}
}
