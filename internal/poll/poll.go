// Package poll spaces repeated looks at something that changes by itself: a pause that
// ends with its context, and pauses that double.
package poll

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Sleep waits for d. It returns context.Cause(ctx) as soon as ctx has ended, also when d
// is zero or negative.
func Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Backoff gives pauses that double from the first to the longest, without jitter. It is
// not safe for concurrent use.
type Backoff struct{ pauses *backoff.ExponentialBackOff }

// NewBackoff starts with first, which must be positive; longest must not be shorter.
func NewBackoff(first, longest time.Duration) *Backoff {
	b := &backoff.ExponentialBackOff{InitialInterval: first, Multiplier: 2, MaxInterval: longest}
	b.Reset()
	return &Backoff{pauses: b}
}

// Next is the length of the next pause.
func (b *Backoff) Next() time.Duration { return b.pauses.NextBackOff() }

// Reset starts again with the first pause.
func (b *Backoff) Reset() { b.pauses.Reset() }

// Sleep waits for the next pause. Errors as of the function Sleep.
func (b *Backoff) Sleep(ctx context.Context) error { return Sleep(ctx, b.Next()) }

// After ticks once after the next pause: for a select that waits for other things too.
func (b *Backoff) After() <-chan time.Time { return time.After(b.Next()) }
