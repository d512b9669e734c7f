package ops

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/process"
	"sbx/internal/testkit/bubble"
)

// TestASecondInterruptIsASecondDecision: what comes within a second of the words that acknowledge the first one
// repeats it.
func TestASecondInterruptIsASecondDecision(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cause error
		at    []time.Duration // signals after the end of the context
		left  time.Duration   // when the cleanup is left; 0 = never
	}{
		"the same signal twice":           {fault.New(fault.KindCanceled, "interrupted"), []time.Duration{0, 0, time.Millisecond, 900 * time.Millisecond}, 0},
		"a person who asks again":         {fault.New(fault.KindCanceled, "interrupted"), []time.Duration{0, 2 * time.Second}, 2 * time.Second},
		"a time limit, and nobody":        {fault.New(fault.KindTimeout, "5s"), nil, 0},
		"a time limit with a stop beside": {fault.New(fault.KindTimeout, "5s"), []time.Duration{time.Millisecond}, 0},
		"a time limit, then a person":     {fault.New(fault.KindTimeout, "5s"), []time.Duration{3 * time.Second}, 3 * time.Second},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			signals := make(chan os.Signal, 2)
			e := &Env{Process: process.Process{Signals: func() (<-chan os.Signal, func()) { return signals, func() {} }}}
			ctx, cancel := context.WithCancelCause(t.Context())
			life, leave := context.WithCancelCause(t.Context())
			said := false
			over := e.OnInterrupts(ctx, func() { said = true }, leave)
			cancel(tc.cause)
			began := time.Now()
			for _, at := range tc.at {
				time.Sleep(at - time.Since(began))
				select {
				case signals <- os.Interrupt:
				default: // as os/signal does where nobody receives
				}
			}
			synctest.Wait()
			assert.True(t, said)
			assert.Equal(t, tc.left != 0, life.Err() != nil, "left after %s", time.Since(began))
			over()
			synctest.Wait()
		})
	}
}
