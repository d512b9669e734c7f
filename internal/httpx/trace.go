package httpx

import (
	"fmt"
	"net/http"
	"time"
)

func (c *Client) trace(format string, args ...any) {
	if c.net.Trace != nil {
		c.net.Trace(c.clean(fmt.Sprintf(format, args...)))
	}
}

// told is what `-v` writes of one attempt once it is over; size is in bytes, or
// negative for a body that is still coming.
type told func(status int, size int64, err error)

// traced writes the request and gives the function that writes its answer. The
// answer repeats the address, since requests overlap. No header is ever shown.
func (c *Client) traced(req *http.Request) told {
	if c.net.Trace == nil {
		return func(int, int64, error) {}
	}
	began := time.Now()
	call := req.Method + " " + req.URL.String()
	c.trace("> %s", call)
	return func(status int, size int64, err error) {
		took := time.Since(began).Round(time.Millisecond)
		if err != nil {
			c.trace("! %s after %s: %v", call, took, err)
			return
		}
		c.trace("< %d %s %s %s", status, took, bytesText(size), call)
	}
}

// bytesText writes a size as a reader of a trace wants it: "512B", "3.4kB".
func bytesText(n int64) string {
	switch {
	case n < 0:
		return "stream"
	case n < 1000:
		return fmt.Sprintf("%dB", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1fkB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fMB", float64(n)/1000_000)
}
