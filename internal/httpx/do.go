package httpx

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Do sends a request and reads the whole answer. Any status but 2xx is an
// error with a *StatusError inside; a body that is too large, cut short or
// stalled is fault.KindUnavailable.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	res, err := c.repeat(ctx, r, func() (*Response, error) { return c.once(ctx, r) })
	return res, r.scoped(err)
}

// limit is how long one attempt may take.
func (c *Client) limit(r Request) time.Duration {
	if r.Timeout > 0 {
		return r.Timeout
	}
	return c.net.Timeout
}

// once is one attempt, from the connection to the last byte.
func (c *Client) once(ctx context.Context, r Request) (*Response, error) {
	limit := c.limit(r)
	inner, cancel := context.WithTimeoutCause(ctx, limit, silentError{limit})
	defer cancel()
	res, tell, err := c.send(inner, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := c.readAll(res, r)
	if err != nil {
		err = c.broken(inner, r, err)
		tell(0, 0, err)
		return nil, err
	}
	tell(res.StatusCode, int64(len(body)), nil)
	return &Response{Status: res.StatusCode, Header: res.Header, Body: body}, nil
}

// room is how many bytes a body will want: what the server says, else as many as
// the last one, since the pages of a list resemble each other.
func (c *Client) room(said int64) int {
	const most = 64 << 10 // bytes that may turn out to be for nothing
	if said >= 0 {
		return int(said)
	}
	return int(min(c.read.Load(), most))
}

// readAll reads a body up to the cap, and says the cap of what is larger.
func (c *Client) readAll(res *http.Response, r Request) ([]byte, error) {
	limit := r.MaxBody
	if limit <= 0 {
		limit = c.o.MaxBody
	}
	if res.ContentLength > limit {
		return nil, fmt.Errorf("%w: %d bytes, and at most %d are read", errTooLarge, res.ContentLength, limit)
	}
	var body bytes.Buffer
	body.Grow(c.room(res.ContentLength) + bytes.MinRead) // so that the end is found without growing
	n, err := body.ReadFrom(io.LimitReader(res.Body, limit+1))
	if n > limit {
		return nil, fmt.Errorf("%w: at most %d bytes are read", errTooLarge, limit)
	}
	c.read.Store(n)
	return body.Bytes(), err
}
