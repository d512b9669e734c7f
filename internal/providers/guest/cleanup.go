package guest

import (
	"context"
	"time"
)

// CleanupGrace is how long a call may outlive its caller's context to clean up
// after itself: to kill the command it has started, to end the sandbox it has made.
// It stays within the second by which a verb may outlive its limit.
const CleanupGrace = 900 * time.Millisecond

// CleanupContext is the context for such a cleanup: it takes at most that long, and
// ends CleanupGrace after ctx. The requests of a cleanup fail with it and start no
// cleanup of their own.
func CleanupContext(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	stop := context.AfterFunc(ctx, func() {
		grace := time.AfterFunc(CleanupGrace, cancel)
		context.AfterFunc(own, func() { grace.Stop() })
	})
	return own, func() {
		stop()
		cancel()
	}
}
