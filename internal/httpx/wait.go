package httpx

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// retryAfter reads how long a server asks to wait, in any of the spellings that
// providers use: Retry-After in seconds, fractions or as a date; Daytona's
// Retry-After-<class>; on a 429 also RateLimit-Reset and X-RateLimit-Reset, with
// suffix or without, in seconds or as a Unix time. Garbage, zero and the past
// count as not said.
func retryAfter(now time.Time, res *http.Response) time.Duration {
	var headers []string
	switch res.StatusCode {
	case http.StatusServiceUnavailable: // a limit that is not reached resets as well
		headers = []string{"Retry-After"}
	case http.StatusTooManyRequests:
		headers = []string{"Retry-After", "Ratelimit-Reset", "X-Ratelimit-Reset"}
	}
	for _, header := range headers {
		if wait := longest(now, res.Header, header); wait > 0 {
			return wait
		}
	}
	return 0
}

// longest is the longest wait that a header names, with any suffix.
func longest(now time.Time, h http.Header, header string) time.Duration {
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
	unixFrom   = 10 * 365 * 86400     // seconds from which a number is a moment: ten years
	millisFrom = 1e11                 // from which a moment is in milliseconds: the year 5138
	mostAsked  = 366 * 24 * time.Hour // what is longer is garbage
)

// parseWait reads seconds, a Unix time or an HTTP date; 0 for anything else.
func parseWait(now time.Time, text string) time.Duration {
	text = strings.TrimSpace(text)
	if at, err := http.ParseTime(text); err == nil {
		return sane(at.Sub(now).Seconds())
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	if seconds >= millisFrom {
		seconds /= 1000
	}
	if seconds >= unixFrom {
		seconds -= float64(now.UnixNano()) / float64(time.Second)
	}
	return sane(seconds)
}

// sane gives a wait, 0 for what is none.
func sane(seconds float64) time.Duration {
	if !(seconds > 0 && seconds <= mostAsked.Seconds()) {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
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
