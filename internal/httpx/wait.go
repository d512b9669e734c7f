package httpx

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// retryAfter reads how long a server asks to wait, in any of the spellings that
// providers use: Retry-After in seconds, fractions or as a date; Daytona's
// Retry-After-<class>; RateLimit-Reset and X-RateLimit-Reset, with suffix or
// without, in seconds or as a Unix time. Garbage, zero and the past count as
// not said.
func retryAfter(now time.Time, res *http.Response) (time.Duration, bool) {
	if res.StatusCode != http.StatusTooManyRequests && res.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	for _, prefix := range []string{"Retry-After", "Ratelimit-Reset", "X-Ratelimit-Reset"} {
		longest := time.Duration(0)
		for name, values := range res.Header {
			rest, ok := strings.CutPrefix(name, prefix)
			if !ok || (rest != "" && rest[0] != '-') || len(values) == 0 {
				continue
			}
			longest = max(longest, parseWait(now, values[0]))
		}
		if longest > 0 {
			return longest, true
		}
	}
	return 0, false
}

// unixFrom is the number from which seconds are read as a moment: ten years.
const unixFrom = 10 * 365 * 86400

// parseWait reads seconds, a Unix time or an HTTP date; 0 for anything else.
func parseWait(now time.Time, text string) time.Duration {
	text = strings.TrimSpace(text)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if math.IsNaN(seconds) || seconds <= 0 || seconds > 1e12 {
			return 0
		}
		if seconds > 1e11 { // milliseconds of a Unix time
			seconds /= 1000
		}
		if seconds > unixFrom {
			seconds -= float64(now.UnixNano()) / float64(time.Second)
		}
		return max(0, time.Duration(seconds*float64(time.Second)))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// skew keeps how far the server's clock is from ours.
type skew struct {
	mu    sync.Mutex
	ahead time.Duration
	known bool
}

func (s *skew) note(now time.Time, h http.Header) {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead, s.known = at.Sub(now.Truncate(time.Second)), true
}

func (s *skew) last() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead, s.known
}
