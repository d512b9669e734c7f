package httpx

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"

	"sbx/internal/fault"
)

const (
	firstPause = 200 * time.Millisecond
	maxPause   = 5 * time.Second
	// maxRetryAfter is the longest Retry-After that is awaited; the operator decides about a
	// longer one.
	maxRetryAfter = 15 * time.Second
)

// doRetried makes attempts until one succeeds, no other is allowed, or the wait before the next
// would exceed ctx or maxRetryAfter.
func (c *Client) doRetried(ctx context.Context, r Request, attempt func() (*Response, error)) (*Response, error) {
	var last error
	tries := 0
	res, err := backoff.Retry(ctx, func() (*Response, error) {
		if err := c.waitForPace(ctx, r); err != nil {
			return nil, backoff.Permanent(err)
		}
		res, err := attempt()
		tries++
		if err == nil {
			return res, nil
		}
		last = err
		if !mayRepeat(r, err) {
			return nil, backoff.Permanent(err)
		}
		return nil, withRetryAfter(ctx, err)
	},
		backoff.WithBackOff(retryPauses()), backoff.WithMaxTries(uint(c.o.Tries)),
		backoff.WithMaxElapsedTime(0), // tries and ctx limit it; the default would end it without an error
		backoff.WithNotify(func(_ error, pause time.Duration) {
			c.traceLine("! retry %d/%d in %s: %v", tries+1, c.o.Tries, pause.Round(100*time.Millisecond), last)
		}))
	switch {
	case err == nil:
		return res, nil
	case ctx.Err() != nil && last != nil && fault.KindOf(last) == fault.KindUnavailable:
		return nil, c.interruptedFault(ctx, r, last)
	case last != nil && tries >= c.o.Tries:
		return nil, last // without the wrapping of backoff
	}
	return nil, err
}

// retryPauses are the pauses between attempts where the server names none.
func retryPauses() *backoff.ExponentialBackOff {
	p := backoff.NewExponentialBackOff()
	p.InitialInterval, p.MaxInterval, p.Multiplier, p.RandomizationFactor = firstPause, maxPause, 2, 0.5
	return p
}

// withRetryAfter adds the wait of the server's answer; one that is too long ends the attempts.
func withRetryAfter(ctx context.Context, err error) error {
	status := StatusOf(err)
	if status == nil || status.RetryAfter <= 0 {
		return err
	}
	wait := status.RetryAfter
	if deadline, ok := ctx.Deadline(); wait > maxRetryAfter || (ok && time.Until(deadline) < wait) {
		return backoff.Permanent(err)
	}
	return errors.Join(&backoff.RetryAfterError{Duration: wait}, err)
}

// mayRepeat says that a request can be sent again without a second effect and may succeed.
func mayRepeat(r Request, err error) bool {
	if r.Once || fault.KindOf(err) != fault.KindUnavailable || isPermanent(err) || Status(err) == http.StatusGone {
		return false
	}
	switch r.httpMethod() {
	case http.MethodGet, http.MethodHead:
		return true
	case http.MethodDelete:
		return r.Again || NotSent(err) || Status(err) == http.StatusTooManyRequests
	}
	return r.Again || throttledFor(err) > 0
}

// throttledFor is the wait of a 429: its request had no effect. 0 without a time, as in the
// answer for an account that has reached its limits.
func throttledFor(err error) time.Duration {
	if s := StatusOf(err); s != nil && s.Status == http.StatusTooManyRequests {
		return s.RetryAfter
	}
	return 0
}

// isPermanent says that a retry gives the same error: a redirect, a body that is too large, a
// certificate that is not trusted.
func isPermanent(err error) bool {
	lost, ok := errors.AsType[*transportError](err)
	return (ok && lost.permanent) || errors.Is(err, errRedirect) || errors.Is(err, errTooLarge)
}
