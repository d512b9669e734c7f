package httpx

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"sbx/internal/fault"
)

// The pace to begin with. A minute of it is 600 + 60 * 150 = 9,600 requests, and
// the strictest limit that a provider documents is 10,000 (Daytona, rate limits
// of the lowest tier). The burst is a listing of 60,000 rows at 100 a page.
const (
	defaultRate  = 150 // requests per second
	defaultBurst = 600
)

const (
	slowest   = 0.5             // requests per second
	eases     = time.Second     // how often the pace may halve
	recovers  = 5 * time.Second // how often it may grow
	recovered = 0.1             // of the start, each time
)

// pace is the token bucket of one client. It halves when the server says "too
// many" and recovers slowly.
type pace struct {
	bucket *rate.Limiter
	start  rate.Limit
	burst  int

	mu      sync.Mutex
	changed time.Time
}

func newPace(perSecond float64, burst int) *pace {
	return &pace{bucket: rate.NewLimiter(rate.Limit(perSecond), burst), start: rate.Limit(perSecond), burst: burst}
}

// lastMoment is how long before its deadline a request has no more time anyhow.
const lastMoment = 100 * time.Millisecond

// turn waits until a request may be sent.
func (c *Client) turn(ctx context.Context, r Request) error {
	err := c.pace.bucket.Wait(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return c.broken(ctx, r, err)
	}
	// The limiter refuses at once what would outlast the deadline of ctx. So short before
	// it, it is the deadline that ends the request, and no pace of the API.
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < lastMoment {
		<-ctx.Done()
		return c.broken(ctx, r, ctx.Err())
	}
	return fault.New(fault.KindUnavailable, "the pace that the API allows (%.1f requests per second) leaves no time for this one", c.pace.bucket.Limit()).
		At(c.o.Profile, r.Op).WithHint("it throttles: do less at a time, or allow more time")
}

// heard lets the pace follow what a server answers.
func (p *pace) heard(status int) {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		p.throttled()
	default:
		if status < http.StatusInternalServerError {
			p.well()
		}
	}
}

// throttled halves the pace, at most once a second: answers that were on their
// way together count once. What was saved up for a burst is gone.
func (p *pace) throttled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.changed) < eases {
		return
	}
	p.set(now, max(slowest, p.bucket.Limit()/2))
}

// well lets the pace recover by a tenth of the start for each five seconds
// without trouble.
func (p *pace) well() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.bucket.Limit() >= p.start || now.Sub(p.changed) < recovers {
		return
	}
	p.set(now, min(p.start, p.bucket.Limit()+p.start*recovered))
}

// set changes the pace. Below its start a burst is what one second allows.
func (p *pace) set(now time.Time, limit rate.Limit) {
	p.changed = now
	p.bucket.SetLimitAt(now, limit)
	if limit >= p.start {
		p.bucket.SetBurstAt(now, p.burst)
		return
	}
	p.bucket.SetBurstAt(now, max(1, min(p.burst, int(limit))))
}
