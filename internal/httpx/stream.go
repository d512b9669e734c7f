package httpx

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// Stream sends a request once and returns the open body. The headers must come within the
// request's timeout; after that the stream ends with ctx or after Options.Stall without a byte
// (fault.KindUnavailable from Read). The caller closes Body.
func (c *Client) Stream(ctx context.Context, r Request) (*Stream, error) {
	if err := c.waitForPace(ctx, r); err != nil {
		return nil, r.markScope(err)
	}
	limit := c.requestTimeout(r)
	inner, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(noAnswerError{limit}) })
	res, tell, err := c.sendOnce(inner, r)
	if !timer.Stop() && err == nil { // the headers came just after the timeout
		_ = res.Body.Close()
		err = c.requestFault(inner, r, context.Canceled)
		tell(0, 0, err)
	}
	if err != nil {
		cancel(nil)
		return nil, r.markScope(err)
	}
	tell(res.StatusCode, -1, nil)
	return &Stream{Status: res.StatusCode, Header: res.Header, Body: c.watchBody(inner, cancel, r, res.Body)}, nil
}

// Stream is an answer whose body is still coming.
type Stream struct {
	Status int
	Header http.Header
	Body   io.ReadCloser
}

// watchedBody is a body that fails without progress: each Read may take Options.Stall. Time
// between two reads does not count.
type watchedBody struct {
	c      *Client
	r      Request
	ctx    context.Context //nolint:containedctx // the life of the stream, which ends with Close
	cancel context.CancelCauseFunc
	body   io.ReadCloser
	timer  *time.Timer
}

func (c *Client) watchBody(ctx context.Context, cancel context.CancelCauseFunc, r Request, body io.ReadCloser) *watchedBody {
	timer := time.AfterFunc(c.o.Stall, func() { cancel(stalledError{c.o.Stall}) })
	timer.Stop()
	return &watchedBody{c: c, r: r, ctx: ctx, cancel: cancel, body: body, timer: timer}
}

// Read reads what has come; io.EOF at the regular end, otherwise a fault.
func (w *watchedBody) Read(p []byte) (int, error) {
	w.timer.Reset(w.c.o.Stall)
	n, err := w.body.Read(p)
	w.timer.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = w.r.markScope(w.c.requestFault(w.ctx, w.r, err))
	}
	return n, err
}

// Close ends the stream.
func (w *watchedBody) Close() error {
	w.timer.Stop()
	w.cancel(nil)
	return w.body.Close()
}
