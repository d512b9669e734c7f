package httpx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"sbx/internal/fault"
)

// Do sends a request and reads the whole answer. Any status but 2xx is an
// error with a *StatusError inside; a body that is too large, cut short or
// stalled is fault.KindUnavailable.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	limit := r.Timeout
	if limit <= 0 {
		limit = c.net.Timeout
	}
	return c.repeat(ctx, r, func() (*Response, error) { return c.once(ctx, r, limit) })
}

// once is one attempt, from the connection to the last byte.
func (c *Client) once(ctx context.Context, r Request, limit time.Duration) (*Response, error) {
	inner, cancel := context.WithTimeoutCause(ctx, limit, silentError{limit})
	defer cancel()
	res, err := c.send(inner, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := c.readAll(res, r)
	if err != nil {
		return nil, c.broken(inner, r, err)
	}
	return &Response{Status: res.StatusCode, Header: res.Header, Body: body}, nil
}

// errTooLarge is the end of a body that is over the cap.
var errTooLarge = errors.New("the answer is too large")

func (c *Client) readAll(res *http.Response, r Request) ([]byte, error) {
	limit := r.MaxBody
	if limit <= 0 {
		limit = c.o.MaxBody
	}
	if res.ContentLength > limit {
		return nil, fmt.Errorf("%w: %d bytes, and %d are read at most", errTooLarge, res.ContentLength, limit)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, limit)
	}
	return body, err
}

// JSON is Do with the body decoded into out. A body that is no JSON, HTML
// included, is fault.KindUnavailable that says what came instead.
func (c *Client) JSON(ctx context.Context, r Request, out any) (*Response, error) {
	res, err := c.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(res.Body, out); err != nil {
		return res, c.garbage(r, res, err)
	}
	return res, nil
}

// garbage says what came instead of JSON.
func (c *Client) garbage(r Request, res *Response, err error) error {
	start := c.clean(firstWords(res.Body))
	if isHTML(res.Header, res.Body) {
		return fault.New(fault.KindUnavailable, "a web page came instead of data: %q", start).At(c.o.Profile, r.Op).
			WithHint("is the url right? requests go to %s", c.clean(c.Base()))
	}
	if len(res.Body) == 0 {
		return fault.New(fault.KindUnavailable, "the answer is empty").At(c.o.Profile, r.Op)
	}
	return fault.New(fault.KindUnavailable, "the answer is not understood: %s: %q", c.clean(err.Error()), start).At(c.o.Profile, r.Op)
}

// Stream sends a request, once, and gives the open body. Headers must come
// within the request's timeout; after that only a silence of Options.Stall
// ends it (fault.KindUnavailable from Read), or ctx. The caller closes Body.
func (c *Client) Stream(ctx context.Context, r Request) (*Stream, error) {
	limit := r.Timeout
	if limit <= 0 {
		limit = c.net.Timeout
	}
	if err := c.pace.wait(ctx); err != nil {
		return nil, c.broken(ctx, r, err)
	}
	inner, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(silentError{limit}) })
	res, err := c.send(inner, r)
	if !timer.Stop() && err == nil { // the headers came as the time was over
		_ = res.Body.Close()
		err = c.broken(inner, r, context.Canceled)
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	return &Stream{Status: res.StatusCode, Header: res.Header, Body: c.watch(inner, cancel, r, res.Body)}, nil
}

// Stream is an answer whose body is still coming.
type Stream struct {
	Status int
	Header http.Header
	Body   io.ReadCloser
}
