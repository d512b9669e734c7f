package httpx

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	defaultRate  = 50 // requests per second; the strictest documented limit is Daytona's 10,000 a minute
	defaultBurst = 20
	slowest      = 0.5 // requests per second
	// eases is how often the pace may halve and recover.
	eases     = time.Second
	recovers  = 5 * time.Second
	recovered = 0.1 // of the start, for each `recovers` that went well
)

// pace is the token bucket of one client. It halves when the server says "too
// many" and recovers slowly.
type pace struct {
	bucket *rate.Limiter
	start  rate.Limit

	mu      sync.Mutex
	changed time.Time
}

func newPace(perSecond float64, burst int) *pace {
	return &pace{bucket: rate.NewLimiter(rate.Limit(perSecond), burst), start: rate.Limit(perSecond)}
}

func (p *pace) wait(ctx context.Context) error { return p.bucket.Wait(ctx) }

// throttled halves the pace, at most once a second: answers that were on their
// way together count once.
func (p *pace) throttled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.changed) < eases {
		return
	}
	p.changed = now
	p.bucket.SetLimit(max(slowest, p.bucket.Limit()/2))
}

// well lets the pace recover by a tenth for each five seconds without trouble.
func (p *pace) well() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.bucket.Limit() >= p.start || now.Sub(p.changed) < recovers {
		return
	}
	p.changed = now
	p.bucket.SetLimit(min(p.start, p.bucket.Limit()+p.start*recovered))
}
