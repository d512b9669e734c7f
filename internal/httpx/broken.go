package httpx

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"syscall"
	"time"

	"sbx/internal/fault"
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
			WithHint("%s was reached or tried and stays silent", c.host(r))
	}
	if stalled, ok := errors.AsType[stalledError](cause); ok {
		return fault.New(fault.KindUnavailable, "%w", stalled).At(c.o.Profile, r.Op)
	}
	if ctx.Err() != nil {
		return (&fault.Error{Kind: fault.KindOf(ctx.Err()), Err: cause}).At(c.o.Profile, r.Op)
	}
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return known.At(c.o.Profile, r.Op)
	}
	text, hint := c.trouble(r, err)
	e := fault.New(fault.KindUnavailable, "%s", c.clean(text)).At(c.o.Profile, r.Op)
	e.Err = &transportError{text: c.clean(text), err: err}
	e.Hint = c.clean(hint)
	return e
}

// transportError is a failure before or during the answer. Its cause is kept for
// errors.Is alone: its own text may quote an address with a secret.
type transportError struct {
	text string
	err  error
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
	if op, ok := errors.AsType[*net.OpError](t.err); ok && op.Op == "dial" {
		return true
	}
	_, dns := errors.AsType[*net.DNSError](t.err)
	return dns
}

// trouble says in one line what is wrong with the way to the server, and what to
// look at.
func (c *Client) trouble(r Request, err error) (text, hint string) {
	host := c.host(r)
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "no such host: " + dns.Name, "is the url right? requests go to " + host
		}
		return "the name " + dns.Name + " cannot be looked up: " + dns.Err, "is the network up?"
	}
	if text, hint, ok := certificate(err); ok {
		return text, hint
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the server speaks no TLS", "is the url http:// instead of https://?"
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused", "does anything listen at " + host + "?"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset", ""
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the answer was cut short", ""
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok { // its text repeats the whole address
		err = wrapped.Err
	}
	return err.Error(), ""
}

// certificate says which way a server's certificate is not trusted.
func certificate(err error) (text, hint string, found bool) {
	const trust = "set SSL_CERT_FILE to the certificate of your own authority, if there is one"
	if e, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate is not trusted: " + e.Error(), trust, true
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return "its certificate is for another name: " + e.Error(), "is the url right?", true
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return "its certificate is not valid: " + e.Error(), "is the clock of this machine right?", true
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate is not trusted: " + e.Err.Error(), trust, true
	}
	return "", "", false
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
