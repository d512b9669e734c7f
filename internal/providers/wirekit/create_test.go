package wirekit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/providers/wirekit"
)

func TestACleanupEndsSoonAfterItsCaller(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		caller time.Duration // from the start to the end of its context; negative = it has ended before
		most   time.Duration
		lasts  time.Duration
	}{
		"the caller has left":    {-1, 10 * time.Second, wirekit.CleanupGrace},
		"the caller leaves":      {2 * time.Second, 10 * time.Second, 2*time.Second + wirekit.CleanupGrace},
		"the caller stays":       {time.Hour, 10 * time.Second, 10 * time.Second},
		"the most is a moment":   {-1, 100 * time.Millisecond, 100 * time.Millisecond},
		"the caller leaves late": {9500 * time.Millisecond, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				caller, leave := context.WithTimeout(t.Context(), max(tc.caller, 0))
				defer leave()
				began := time.Now()
				ctx, cancel := wirekit.CleanupContext(caller, tc.most)
				defer cancel()
				<-ctx.Done()
				assert.Equal(t, tc.lasts, time.Since(began))
			})
		})
	}
}
