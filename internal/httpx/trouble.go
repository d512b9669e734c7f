package httpx

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
)

// trouble is what is wrong with the way to a server, in one line, and what to
// look at.
type trouble struct {
	text, hint string
	lasting    bool // it will not pass by itself within seconds
}

// trouble sorts what net/http reports.
func (c *Client) trouble(r Request, err error) trouble {
	host := c.host(r)
	for _, sort := range []func(error, string) (trouble, bool){throughProxy, naming, certificate, handshake, connecting} {
		if t, ok := sort(err, host); ok {
			return t
		}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok { // its text repeats the whole address
		err = wrapped.Err
	}
	return trouble{text: err.Error(), lasting: errors.Is(err, errTooLarge)}
}

// throughProxy knows a proxy that cannot be reached.
func throughProxy(err error, host string) (trouble, bool) {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "proxyconnect" {
		return trouble{}, false
	}
	inner := trouble{text: op.Err.Error()}
	if known, ok := naming(op.Err, host); ok {
		inner = known
	} else if known, ok := connecting(op.Err, host); ok {
		inner = known
	}
	return trouble{text: "the proxy cannot be reached: " + inner.text, hint: "look at HTTPS_PROXY, HTTP_PROXY and NO_PROXY", lasting: inner.lasting}, true
}

// naming knows a name that DNS does not give.
func naming(err error, host string) (trouble, bool) {
	dns, ok := errors.AsType[*net.DNSError](err)
	switch {
	case !ok:
		return trouble{}, false
	case dns.IsNotFound:
		return trouble{text: "DNS knows no such host: " + dns.Name, hint: "is the url right? requests go to " + host, lasting: true}, true
	}
	return trouble{text: "the name " + dns.Name + " cannot be looked up: " + dns.Err, hint: "is the network up?"}, true
}

// certificate says in which way a server's certificate is not trusted.
func certificate(err error, host string) (trouble, bool) {
	const trust = "set SSL_CERT_FILE to the certificate of your own authority, if there is one"
	if e, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return trouble{"its certificate is not trusted: " + e.Error(), trust, true}, true
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return trouble{"its certificate is for another name: " + e.Error(), "is the url right? requests go to " + host, true}, true
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return trouble{"its certificate is not valid: " + e.Error(), "is the clock of this machine right? else " + trust, true}, true
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return trouble{"its certificate is not trusted: " + e.Err.Error(), trust, true}, true
	}
	return trouble{}, false
}

// handshake knows a server with which TLS cannot be agreed.
func handshake(err error, host string) (trouble, bool) {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return trouble{"the server speaks no TLS", "is the url http:// instead of https://? requests go to " + host, true}, true
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		return trouble{"no TLS with this server: " + alert.Error(), "", true}, true
	}
	return trouble{}, false
}

// connecting knows what happens to connections.
func connecting(err error, host string) (trouble, bool) {
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return trouble{text: "connection refused", hint: "does anything listen at " + host + "?"}, true
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return trouble{text: "the connection was reset", hint: "try again: a server or a proxy on the way gave it up"}, true
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return trouble{text: "no way to the host", hint: "is the network up, and the VPN?"}, true
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return trouble{text: "the answer was cut short", hint: "try again: a server or a proxy on the way gave it up"}, true
	case isNet && timeout.Timeout():
		return trouble{text: "no connection in time", hint: "is " + host + " reachable from here?"}, true
	}
	return trouble{}, false
}
