package httpx

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"sbx/internal/fault"
)

// Errors after which a request is not repeated: they would come again.
var (
	errRedirect = errors.New("it redirects")
	errTooLarge = errors.New("the answer is too large")
)

type noAnswerError struct{ after time.Duration }

// Error says for how long nothing came.
func (e noAnswerError) Error() string { return "no answer within " + e.after.String() }

type stalledError struct{ after time.Duration }

// Error says for how long nothing came.
func (e stalledError) Error() string { return "stalled: no data for " + e.after.String() }

// requestFault converts an error of the transport: the end of the caller's context is canceled
// or timeout, any other error is unavailable.
func (c *Client) requestFault(ctx context.Context, r Request, err error) error {
	cause := context.Cause(ctx)
	known, named := errors.AsType[*fault.Error](err)
	silent, late := errors.AsType[noAnswerError](cause)
	if named && (ctx.Err() == nil || late && known.Kind == fault.KindAuth) { // what gives the credentials may be what is late
		own := *known // several requests may share it
		return own.At(c.o.Profile, r.Op)
	}
	if late {
		return fault.New(fault.KindUnavailable, "%w", silent).At(c.o.Profile, r.Op).
			WithHint("%s does not answer: try later, or allow more time with limits.request_timeout", c.hostOf(r))
	}
	if stalled, ok := errors.AsType[stalledError](cause); ok {
		return fault.New(fault.KindUnavailable, "%w", stalled).At(c.o.Profile, r.Op).WithHint("what was received before is valid: request the rest again")
	}
	if ctx.Err() != nil {
		return (&fault.Error{Kind: fault.KindOf(ctx.Err()), Err: cause}).At(c.o.Profile, r.Op)
	}
	t := c.describeFailure(r, err)
	lost := &transportError{text: c.Clean(t.text), err: err, permanent: t.permanent}
	return (&fault.Error{Kind: fault.KindUnavailable, Hint: c.Clean(t.hint), Err: lost}).At(c.o.Profile, r.Op)
}

// interruptedFault is requestFault for a ctx that ended between two attempts. It has the error
// of the last attempt.
func (c *Client) interruptedFault(ctx context.Context, r Request, last error) error {
	err := c.requestFault(ctx, r, ctx.Err())
	f, ok := errors.AsType[*fault.Error](err)
	before, told := errors.AsType[*fault.Error](last)
	if !ok || !told {
		return err
	}
	f.Err = fmt.Errorf("%w; the last attempt returned: %w", f.Err, before.Err)
	return f
}

// transportError is a failure before or during the answer. Its cause is for errors.Is only: the
// text of the cause may have an address with a secret.
type transportError struct {
	text      string
	err       error
	permanent bool // a retry does not help
}

// Error is the text without secrets.
func (e *transportError) Error() string { return e.text }

// Is compares the cause.
func (e *transportError) Is(target error) bool { return errors.Is(e.err, target) }

// NotSent says that a request never reached the server, or was turned away at its door, so that it can be sent again.
func NotSent(err error) bool {
	if s := StatusOf(err); s != nil && s.passing {
		return true
	}
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

// hostOf is the address of a request's server, for texts.
func (c *Client) hostOf(r Request) string {
	if r.URL != "" {
		if u, err := url.Parse(r.URL); err == nil {
			return u.Scheme + "://" + u.Host
		}
	}
	return c.base.Scheme + "://" + c.base.Host
}

// failureText describes a failed connection in one line, with a hint.
type failureText struct {
	text, hint string
	permanent  bool // it does not pass within seconds
}

func (c *Client) describeFailure(r Request, err error) failureText {
	host := c.hostOf(r)
	for _, describe := range []func(error, string) (failureText, bool){proxyFailure, dnsFailure, certificateFailure, tlsFailure, connectionFailure} {
		if t, ok := describe(err, host); ok {
			return t
		}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok { // its text repeats the whole address
		err = wrapped.Err
	}
	return failureText{text: err.Error(), permanent: errors.Is(err, errTooLarge)}
}

func proxyFailure(err error, host string) (failureText, bool) {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "proxyconnect" {
		return failureText{}, false
	}
	inner := failureText{text: op.Err.Error()}
	if known, ok := dnsFailure(op.Err, host); ok {
		inner = known
	} else if known, ok := connectionFailure(op.Err, host); ok {
		inner = known
	}
	return failureText{text: "the proxy cannot be reached: " + inner.text, hint: "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY", permanent: inner.permanent}, true
}

func dnsFailure(err error, host string) (failureText, bool) {
	dns, ok := errors.AsType[*net.DNSError](err)
	switch {
	case !ok:
		return failureText{}, false
	case dns.IsNotFound:
		return failureText{text: "DNS has no such host: " + dns.Name, hint: "check the url: requests go to " + host, permanent: true}, true
	}
	return failureText{text: "the name " + dns.Name + " cannot be looked up: " + dns.Err, hint: "check the network"}, true
}

func certificateFailure(err error, host string) (failureText, bool) {
	const trust = "set SSL_CERT_FILE to the certificate of your own authority, if there is one"
	if e, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return failureText{"its certificate is not trusted: " + e.Error(), trust, true}, true
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return failureText{"its certificate is for another name: " + e.Error(), "check the url: requests go to " + host, true}, true
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return failureText{"its certificate is not valid: " + e.Error(), "check the clock of this machine; if it is right, " + trust, true}, true
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return failureText{"its certificate is not trusted: " + e.Err.Error(), trust, true}, true
	}
	return failureText{}, false
}

func tlsFailure(err error, host string) (failureText, bool) {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return failureText{"the server does not use TLS", "if the server has no TLS, write http:// in the url; requests go to " + host, true}, true
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		return failureText{"the TLS handshake failed: " + alert.Error(), "", true}, true
	}
	return failureText{}, false
}

func connectionFailure(err error, host string) (failureText, bool) {
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return failureText{text: "connection refused", hint: "check that a server listens at " + host}, true
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return failureText{text: "the connection was reset", hint: "try again: a server or a proxy closed it"}, true
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return failureText{text: "no route to the host", hint: "check the network and the VPN"}, true
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return failureText{text: "the answer was cut short", hint: "try again: a server or a proxy closed it"}, true
	case isNet && timeout.Timeout():
		return failureText{text: "no connection in time", hint: "check that " + host + " can be reached from here"}, true
	}
	return failureText{}, false
}
