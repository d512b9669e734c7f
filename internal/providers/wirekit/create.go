package wirekit

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// CleanupGrace is how long a call may outlive its caller's context to clean up after
// itself: to kill the command that it started, to end the sandbox that it made. It is
// shorter than the second by which a verb may outlive its limit.
const CleanupGrace = 900 * time.Millisecond

// CleanupContext is the context of such a cleanup: it ends after limit, or CleanupGrace
// after ctx, whichever is first. A cleanup must not start another one when it fails.
func CleanupContext(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() {
		grace := time.AfterFunc(CleanupGrace, cancel)
		context.AfterFunc(own, func() { grace.Stop() })
	})
	return own, func() {
		stop()
		cancel()
	}
}

// UndoCreate deletes a sandbox whose program could not be started because of err. The
// error that it returns says whether the delete was accepted. done is what the delete
// does in the provider's words, and flags is what `sbx terminate` needs to do the same.
func UndoCreate(ctx context.Context, p providers.Provider, id string, err error, done, flags string) error {
	end, cancel := CleanupContext(ctx, httpx.DefaultTimeout)
	defer cancel()
	kind := fault.KindOf(err)
	undone := fault.New(kind, "%w; its sandbox was %s again", err, done)
	if p.Terminate(end, id, providers.TerminateOptions{Delete: true}) != nil {
		undone = fault.New(kind, "%w; its sandbox %s still runs", err, id).WithHint("end it with `sbx terminate %s/%s%s`", p.Name(), id, flags)
	}
	return fault.Placed(undone, p.Name(), "create")
}

// ConflictUnsettled is the error of a create that was answered with a conflict where the
// search for the sandbox of an earlier attempt failed: it may exist.
func ConflictUnsettled(conflict, searched error, mark providers.CreateMark) error {
	return fault.New(fault.KindUnavailable, "%w; whether an earlier try has made it is not known: %w", conflict, searched).
		At(mark.Provider, "create").WithHint("look for it with `%s`", mark.SearchCommand())
}
