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
	mostPause  = 5 * time.Second
	// mostWait is the longest Retry-After that is waited for; a longer one is
	// the operator's to decide about.
	mostWait = 15 * time.Second
)

// repeat makes attempts until one succeeds, none may follow, or the wait for the
// next would outlast ctx or mostWait.
func (c *Client) repeat(ctx context.Context, r Request, attempt func() (*Response, error)) (*Response, error) {
	var last error
	tries := 0
	res, err := backoff.Retry(ctx, func() (*Response, error) {
		if err := c.turn(ctx, r); err != nil {
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
		return nil, after(ctx, err)
	},
		backoff.WithBackOff(pauses()), backoff.WithMaxTries(uint(c.o.Tries)),
		backoff.WithMaxElapsedTime(0), // tries and ctx bound it; unset, it would give up in silence
		backoff.WithNotify(func(_ error, pause time.Duration) {
			c.trace("! retry %d/%d in %s: %v", tries+1, c.o.Tries, pause.Round(100*time.Millisecond), last)
		}))
	switch {
	case err == nil:
		return res, nil
	case ctx.Err() != nil && last != nil && fault.KindOf(last) == fault.KindUnavailable:
		return nil, c.ended(ctx, r, last)
	case last != nil && tries >= c.o.Tries:
		return nil, last // without what backoff wraps around the last try
	}
	return nil, err
}

// pauses are those between attempts where the server names none.
func pauses() *backoff.ExponentialBackOff {
	p := backoff.NewExponentialBackOff()
	p.InitialInterval, p.MaxInterval, p.Multiplier, p.RandomizationFactor = firstPause, mostPause, 2, 0.5
	return p
}

// after adds the wait that the server asked for; one that is too long ends the
// attempts.
func after(ctx context.Context, err error) error {
	status := StatusOf(err)
	if status == nil || status.RetryAfter <= 0 {
		return err
	}
	wait := status.RetryAfter
	if deadline, ok := ctx.Deadline(); wait > mostWait || (ok && time.Until(deadline) < wait) {
		return backoff.Permanent(err)
	}
	return errors.Join(&backoff.RetryAfterError{Duration: wait}, err)
}

// mayRepeat says that sending a request again can neither do anything twice nor
// is in vain.
func mayRepeat(r Request, err error) bool {
	if r.Once || fault.KindOf(err) != fault.KindUnavailable || lasting(err) || Status(err) == http.StatusGone {
		return false
	}
	switch r.method() {
	case http.MethodGet, http.MethodHead:
		return true
	case http.MethodDelete:
		return r.Again || NotSent(err) || Status(err) == http.StatusTooManyRequests
	}
	return r.Again || throttledFor(err) > 0
}

// throttledFor is how long a 429 asks to wait, which it says of a rate that will have
// passed, and by which it has done nothing; 0 where it names no time: an account that
// holds as much as it may is answered like that.
func throttledFor(err error) time.Duration {
	if s := StatusOf(err); s != nil && s.Status == http.StatusTooManyRequests {
		return s.RetryAfter
	}
	return 0
}

// lasting knows what would come again: a redirect, a body over the cap, a
// certificate that nobody trusts.
func lasting(err error) bool {
	lost, ok := errors.AsType[*transportError](err)
	return (ok && lost.lasting) || errors.Is(err, errRedirect) || errors.Is(err, errTooLarge)
}
