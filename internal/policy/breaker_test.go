package policy_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/policy"
)

func TestBreaker(t *testing.T) {
	t.Parallel()
	down, answered := fault.New(fault.KindUnavailable, "HTTP 503"), fault.New(fault.KindNotFound, "HTTP 404")
	synctest.Test(t, func(t *testing.T) {
		b := policy.NewBreaker("prod")
		tell := func(results ...error) {
			for _, err := range results {
				done, refused := b.Allow()
				require.NoError(t, refused)
				done(err)
			}
		}
		dead := &fault.Error{Kind: fault.KindUnavailable, OneSandbox: true, Err: errors.New("port is not open")}
		tell(dead, dead, dead, dead, dead, dead, fmt.Errorf("exec: %w", dead))
		tell(down, down, down, dead, down, answered) // it does not count for the provider either
		tell(down, down, down, down, answered, down, down, down, down, nil)
		tell(down, down, down, down, down)
		_, err := b.Allow()
		require.ErrorIs(t, err, policy.ErrOpen)
		assert.Equal(t, fault.KindRefused, fault.KindOf(err))
		assert.Contains(t, fault.HintOf(err), "30s")
		<-time.After(policy.StaysOpen + time.Second)
		probe, err := b.Allow()
		require.NoError(t, err)
		_, err = b.Allow()
		require.ErrorIs(t, err, policy.ErrOpen, "one call probes")
		probe(down)
		_, err = b.Allow()
		require.ErrorIs(t, err, policy.ErrOpen)
		<-time.After(policy.StaysOpen + time.Second)
		tell(nil, nil, down)
	})
}
