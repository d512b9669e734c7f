package httpx

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// clockSkew compares the server's clock, the Date of its answers, with this machine's. An answer from a cache has the
// Date at which it was made: Age corrects it, and where there is none it says nothing.
type clockSkew struct {
	mu    sync.Mutex
	ahead time.Duration
	known bool
	date  time.Time // of the last answer that counted
	at    time.Time // of this machine then
}

// stuckAfter is how far this machine's clock may go on while Date stands still: it has whole seconds.
const stuckAfter = 2 * time.Second

func (s *clockSkew) record(now time.Time, h http.Header) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	age, err := strconv.ParseInt(strings.TrimSpace(h.Get("Age")), 10, 32)
	aged := err == nil && age > 0
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case aged:
		date = date.Add(time.Duration(age) * time.Second)
	case fromCache(h):
		return
	case date.Equal(s.date) && now.Sub(s.at) > stuckAfter: // a cache that does not say so
		s.known = false
		return
	}
	if !date.Equal(s.date) {
		s.date, s.at = date, now
	}
	s.ahead, s.known = date.Sub(now.Truncate(time.Second)), true
}

// fromCache reports whether a header of a cache says that it answered: "Hit from cloudfront", "HIT, MISS",
// "ExampleCache; hit; ttl=376" (RFC 9211).
func fromCache(h http.Header) bool {
	for _, name := range []string{"X-Cache", "X-Cache-Status", "X-Proxy-Cache", "X-Vercel-Cache", "Cf-Cache-Status", "Cache-Status"} {
		for _, value := range h.Values(name) {
			words := strings.FieldsFunc(strings.ToLower(value), func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' })
			if slices.ContainsFunc(words, func(w string) bool { return w == "hit" || strings.HasSuffix(w, "_hit") || w == "stale" }) {
				return true
			}
		}
	}
	return false
}

func (s *clockSkew) lastSkew() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead, s.known
}
