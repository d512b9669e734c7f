package wirekit_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/testkit/bubble"
)

// TestACleanupOfACommandThatAPersonWaitsFor has the time that its caller leaves it.
func TestACleanupOfACommandThatAPersonWaitsFor(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "given up", func(t *testing.T) {
		caller, leave := context.WithTimeout(providers.WithCleanupLimit(t.Context(), time.Second), 2*time.Second)
		defer leave()
		<-caller.Done()
		began := time.Now()
		ctx, cancel := wirekit.CleanupContext(caller)
		defer cancel()
		<-ctx.Done()
		assert.Equal(t, time.Second, time.Since(began))
	})
}

// TestACleanupHasItsOwnTime: a kill that is given up when its caller leaves lets the command run on.
func TestACleanupHasItsOwnTime(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]time.Duration{ // from the start to the end of the caller's context
		"the caller has left": 0,
		"the caller leaves":   2 * time.Second,
		"the caller stays":    time.Hour,
	} {
		bubble.Run(t, name, func(t *testing.T) {
			caller, leave := context.WithTimeout(t.Context(), left)
			defer leave()
			began := time.Now()
			ctx, cancel := wirekit.CleanupContext(caller)
			defer cancel()
			<-ctx.Done()
			assert.Equal(t, wirekit.CleanupLimit, time.Since(began))
		})
	}
}
