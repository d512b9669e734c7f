package wirekit

import (
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
)

// defaultTTL is the longest life of a sandbox whose spec names none: every sandbox of a service has a limit, and the
// defaults of services reach from 15 s to none.
const defaultTTL = 10 * time.Minute

// TTL is the longest life of a new sandbox.
func TTL(wanted time.Duration) time.Duration {
	if wanted <= 0 {
		return defaultTTL
	}
	return wanted
}

// LifeUntil is how long a life that the API counts from now has to be so that it does not end before until, by its clock
// and by that of this machine. Where these differ, or the API reports no time, a longer life could be a shorter one.
func (b *Base) LifeUntil(op string, until time.Time) (time.Duration, error) {
	ahead, known := b.Skew()
	switch {
	case !known:
		return 0, b.Fault(fault.KindUnavailable, op, "the API does not report its time, from which it would count")
	case providers.ClockWords(ahead) != "":
		return 0, b.Fault(fault.KindRefused, op, "the API's clock, from which it would count, is %s this machine's", providers.ClockWords(ahead)).
			WithHint("correct this machine's clock")
	}
	return until.Sub(b.Now().Add(min(0, ahead))) + time.Second, nil // a clock is known to the second
}
