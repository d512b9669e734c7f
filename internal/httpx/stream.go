package httpx

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// Stream sends a request, once, and gives the open body. Headers must come
// within the request's timeout; after that only a silence of Options.Stall
// ends it (fault.KindUnavailable from Read), or ctx. The caller closes Body.
func (c *Client) Stream(ctx context.Context, r Request) (*Stream, error) {
	if err := c.turn(ctx, r); err != nil {
		return nil, r.scoped(err)
	}
	limit := c.limit(r)
	inner, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(silentError{limit}) })
	res, tell, err := c.send(inner, r)
	if !timer.Stop() && err == nil { // the headers came as the time was over
		_ = res.Body.Close()
		err = c.broken(inner, r, context.Canceled)
		tell(0, 0, err)
	}
	if err != nil {
		cancel(nil)
		return nil, r.scoped(err)
	}
	tell(res.StatusCode, -1, nil)
	return &Stream{Status: res.StatusCode, Header: res.Header, Body: c.watch(inner, cancel, r, res.Body)}, nil
}

// Stream is an answer whose body is still coming.
type Stream struct {
	Status int
	Header http.Header
	Body   io.ReadCloser
}

// watched is a body that is given up when it makes no progress. Each Read has
// Options.Stall; time in which nobody reads does not count.
type watched struct {
	c      *Client
	r      Request
	ctx    context.Context //nolint:containedctx // the life of the stream, which ends with Close
	cancel context.CancelCauseFunc
	body   io.ReadCloser
	timer  *time.Timer
}

func (c *Client) watch(ctx context.Context, cancel context.CancelCauseFunc, r Request, body io.ReadCloser) *watched {
	timer := time.AfterFunc(c.o.Stall, func() { cancel(stalledError{c.o.Stall}) })
	timer.Stop()
	return &watched{c: c, r: r, ctx: ctx, cancel: cancel, body: body, timer: timer}
}

// Read gives what has come, io.EOF at the proper end, or a fault.
func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.c.o.Stall)
	n, err := w.body.Read(p)
	w.timer.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = w.r.scoped(w.c.broken(w.ctx, w.r, err))
	}
	return n, err
}

// Close ends the stream and lets the connection go.
func (w *watched) Close() error {
	w.timer.Stop()
	w.cancel(nil)
	return w.body.Close()
}
