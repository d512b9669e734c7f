package httpx

import (
	"context"
	"errors"
	"fmt"
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
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.Multiplier, pauses.RandomizationFactor = firstPause, mostPause, 2, 0.5
	var last error
	n := 0
	res, err := backoff.Retry(ctx, func() (*Response, error) {
		if err := c.pace.wait(ctx); err != nil {
			return nil, backoff.Permanent(c.broken(ctx, r, err))
		}
		res, err := attempt()
		n++
		if err == nil {
			return res, nil
		}
		last = err
		if !mayRepeat(r, err) {
			return nil, backoff.Permanent(err)
		}
		return nil, c.after(ctx, err)
	}, backoff.WithBackOff(pauses), backoff.WithMaxTries(uint(c.o.Tries)), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(_ error, pause time.Duration) {
			c.trace("! again in " + pause.Round(time.Millisecond).String() + ", " + fmt.Sprintf("try %d of %d: ", n+1, c.o.Tries) + last.Error())
		}))
	switch {
	case err == nil:
		return res, nil
	case ctx.Err() != nil:
		return nil, c.broken(ctx, r, err)
	case last != nil:
		return nil, last
	}
	return nil, err
}

// after adds the wait that the server asked for; one that is too long ends the
// attempts.
func (c *Client) after(ctx context.Context, err error) error {
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
	status := Status(err)
	switch {
	case r.Once, fault.KindOf(err) != fault.KindUnavailable, errors.Is(err, errTooLarge):
		return false
	case redirects(err):
		return false
	case NotSent(err), status == http.StatusTooManyRequests:
		return r.Again || idempotent(r.Method)
	}
	return r.Again || r.Method == "" || r.Method == http.MethodGet || r.Method == http.MethodHead
}

// redirects knows the refusal of redirected, which carries no transport error.
func redirects(err error) bool {
	_, transport := errors.AsType[*transportError](err)
	_, silent := errors.AsType[silentError](err)
	return !transport && !silent && Status(err) == 0
}

func idempotent(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodPut:
		return true
	}
	return false
}
