package httpx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"sbx/internal/fault"
)

// What ends a request for good: the same would come again.
var (
	errRedirect = errors.New("it redirects")
	errTooLarge = errors.New("the answer is too large")
)

// silentError is the cause of a request that ended for want of an answer.
type silentError struct{ after time.Duration }

// Error says for how long nothing came.
func (e silentError) Error() string { return "no answer within " + e.after.String() }

// stalledError is the cause of a stream that ended for want of progress.
type stalledError struct{ after time.Duration }

// Error says for how long nothing came.
func (e stalledError) Error() string { return "stalled: no byte for " + e.after.String() }

// broken turns what went wrong on the way into a fault: the caller's own end is
// canceled or timeout, all else is unavailable.
func (c *Client) broken(ctx context.Context, r Request, err error) error {
	cause := context.Cause(ctx)
	if silent, ok := errors.AsType[silentError](cause); ok {
		return fault.New(fault.KindUnavailable, "%w", silent).At(c.o.Profile, r.Op).
			WithHint("%s was asked and stays silent: try later, or allow more with limits.request_timeout", c.host(r))
	}
	if stalled, ok := errors.AsType[stalledError](cause); ok {
		return fault.New(fault.KindUnavailable, "%w", stalled).At(c.o.Profile, r.Op).WithHint("what came before it stands: ask again for the rest")
	}
	if ctx.Err() != nil {
		return (&fault.Error{Kind: fault.KindOf(ctx.Err()), Err: cause}).At(c.o.Profile, r.Op)
	}
	if known, ok := errors.AsType[*fault.Error](err); ok {
		own := *known // several requests may share it
		return own.At(c.o.Profile, r.Op)
	}
	t := c.trouble(r, err)
	lost := &transportError{text: c.clean(t.text), err: err, lasting: t.lasting}
	return (&fault.Error{Kind: fault.KindUnavailable, Hint: c.clean(t.hint), Err: lost}).At(c.o.Profile, r.Op)
}

// ended is broken for a ctx that ended between two attempts: it names what the
// last one said.
func (c *Client) ended(ctx context.Context, r Request, last error) error {
	err := c.broken(ctx, r, ctx.Err())
	f, ok := errors.AsType[*fault.Error](err)
	before, told := errors.AsType[*fault.Error](last)
	if !ok || !told {
		return err
	}
	f.Err = fmt.Errorf("%w; the last try said: %w", f.Err, before.Err)
	return f
}

// transportError is a failure before or during the answer. Its cause is kept for
// errors.Is alone: its own text may quote an address with a secret.
type transportError struct {
	text    string
	err     error
	lasting bool // trying again at once is in vain
}

// Error says what happened, without secrets.
func (e *transportError) Error() string { return e.text }

// Is knows the cause without showing it.
func (e *transportError) Is(target error) bool { return errors.Is(e.err, target) }

// NotSent says that a request never reached the server, so that sending it
// again cannot do anything twice.
func NotSent(err error) bool {
	t, ok := errors.AsType[*transportError](err)
	if !ok {
		return false
	}
	if op, ok := errors.AsType[*net.OpError](t.err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		return true
	}
	_, dns := errors.AsType[*net.DNSError](t.err)
	return dns
}

// host is where a request goes, for texts.
func (c *Client) host(r Request) string {
	if r.URL != "" {
		if u, err := url.Parse(r.URL); err == nil {
			return u.Scheme + "://" + u.Host
		}
	}
	return c.base.Scheme + "://" + c.base.Host
}
