package httpx

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/time/rate"

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
		err = c.settles(ctx, r, err)
		last = err
		if fault.SettlesLook(err) || !mayRepeat(r, err) {
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
	if s := StatusOf(err); s != nil && s.passing { // it had no effect
		return true
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

// RetryAfter is the wait that a server asks for, in any format of the providers: Retry-After in
// seconds, fractions or as a date; Daytona's Retry-After-<class>; with a 429 also
// RateLimit-Reset and X-RateLimit-Reset, with a suffix or without, in seconds or as a Unix time.
// 0 for an invalid value, zero and the past.
func RetryAfter(now time.Time, res *http.Response) time.Duration {
	var headers []string
	switch res.StatusCode {
	case http.StatusServiceUnavailable: // it may have a reset of a limit that was not reached
		headers = []string{"Retry-After"}
	case http.StatusTooManyRequests:
		headers = []string{"Retry-After", "Ratelimit-Reset", "X-Ratelimit-Reset"}
	}
	for _, header := range headers {
		if wait := longestWait(now, res.Header, header); wait > 0 {
			return wait
		}
	}
	return 0
}

func longestWait(now time.Time, h http.Header, header string) time.Duration {
	var wait time.Duration
	for name, values := range h {
		suffix, ok := strings.CutPrefix(name, header)
		if ok && (suffix == "" || suffix[0] == '-') && len(values) > 0 {
			wait = max(wait, parseWait(now, values[0]))
		}
	}
	return wait
}

const (
	minUnixTime   = 10 * 365 * 86400     // seconds from which a number is a moment: ten years
	minUnixMillis = 1e11                 // from which a moment is in milliseconds: the year 5138
	maxWait       = 366 * 24 * time.Hour // a longer one is invalid
)

// parseWait reads seconds, a Unix time or an HTTP date; 0 for anything else.
func parseWait(now time.Time, text string) time.Duration {
	text = strings.TrimSpace(text)
	if at, err := http.ParseTime(text); err == nil {
		return validWait(at.Sub(now).Seconds())
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	if seconds >= minUnixMillis {
		seconds /= 1000
	}
	if seconds >= minUnixTime {
		seconds -= float64(now.UnixNano()) / float64(time.Second)
	}
	return validWait(seconds)
}

// validWait converts a valid number of seconds; 0 for any other.
func validWait(seconds float64) time.Duration {
	if !(seconds > 0 && seconds <= maxWait.Seconds()) {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// The initial rate. A minute of it is 600 + 60 * 150 = 9,600 requests; the strictest limit that
// a provider documents is 10,000 (Daytona, rate limits of the lowest tier). The burst is a
// listing of 60,000 rows at 100 a page.
const (
	defaultRate  = 150 // requests per second
	defaultBurst = 600
)

const (
	minRate          = 0.5             // requests per second
	slowDownInterval = time.Second     // between two reductions
	speedUpInterval  = 5 * time.Second // between two increases
	speedUpStep      = 0.1             // of the initial rate, per increase
)

// pacer is the token bucket of one client. It halves its rate when the server answers "too many
// requests" and increases it slowly.
type pacer struct {
	bucket *rate.Limiter
	start  rate.Limit
	burst  int

	mu      sync.Mutex
	changed time.Time
}

// deadlineMargin is the time before a deadline that is too short for a request.
const deadlineMargin = 100 * time.Millisecond

func (c *Client) waitForPace(ctx context.Context, r Request) error {
	err := c.pace.bucket.Wait(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return c.requestFault(ctx, r, err)
	}
	// The limiter refuses at once a wait beyond the deadline of ctx. Just before the deadline
	// the error is that of the deadline and not of the rate.
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < deadlineMargin {
		<-ctx.Done()
		return c.requestFault(ctx, r, ctx.Err())
	}
	return fault.New(fault.KindUnavailable, "the API's rate limit (%.1f requests per second) leaves no time for this request", c.pace.bucket.Limit()).
		At(c.o.Profile, r.Op).WithHint("it throttles: send fewer requests at a time, or allow more time")
}

func (p *pacer) recordStatus(status int) {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		p.slowDown()
	default:
		if status < http.StatusInternalServerError {
			p.speedUp()
		}
	}
}

// slowDown halves the rate, at most once a second: concurrent answers count once. The unused
// part of the burst is lost.
func (p *pacer) slowDown() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.changed) < slowDownInterval {
		return
	}
	p.setPace(now, max(minRate, p.bucket.Limit()/2))
}

// speedUp increases the rate by a tenth of the initial one for each five seconds without a
// refusal.
func (p *pacer) speedUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.bucket.Limit() >= p.start || now.Sub(p.changed) < speedUpInterval {
		return
	}
	p.setPace(now, min(p.start, p.bucket.Limit()+p.start*speedUpStep))
}

// setPace sets the rate. Below the initial rate a burst is that of one second.
func (p *pacer) setPace(now time.Time, limit rate.Limit) {
	p.changed = now
	p.bucket.SetLimitAt(now, limit)
	if limit >= p.start {
		p.bucket.SetBurstAt(now, p.burst)
		return
	}
	p.bucket.SetBurstAt(now, max(1, min(p.burst, int(limit))))
}
