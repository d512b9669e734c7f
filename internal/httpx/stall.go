package httpx

import (
	"context"
	"errors"
	"io"
	"time"
)

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
		err = w.c.broken(w.ctx, w.r, err)
	}
	return n, err
}

// Close ends the stream and lets the connection go.
func (w *watched) Close() error {
	w.timer.Stop()
	w.cancel(nil)
	return w.body.Close()
}
