// Package httpx is the one HTTP client of sbx. It sends credentials, limits every wait and the
// size of every answer, repeats requests that may be repeated, keeps to the rate that a
// provider allows, and converts statuses to faults. Its texts never contain a secret.
//
// No provider's paths, fields or meanings enter this package; a provider's client sets Options
// and Options.Explain.
package httpx

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/time/rate"

	"sbx/internal/fault"
)

// Timers and limits.
const (
	DefaultTimeout = 10 * time.Second // of one request, until its answer has been read
	DefaultStall   = 10 * time.Second // of a stream without a byte
	DefaultMaxBody = 16 << 20         // bytes of one answer
	DefaultTries   = 3                // of one idempotent request, with the first one
)

// Net is the environment of a client. Zero values mean the defaults of the system.
type Net struct {
	Now    func() time.Time
	Lookup func(key string) (string, bool) // environment: proxies, SSL_CERT_FILE
	// Dial opens connections; tests set it, so that timeouts run in virtual time. A client
	// with a Dial uses no proxy.
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Trace   func(line string) // one line for each request and answer (-v); nil = silent
	Timeout time.Duration     // of one request; 0 = DefaultTimeout
	Agent   string            // the User-Agent header
}

// Options are the options of one API.
type Options struct {
	Profile string // in errors
	Base    string // scheme, host and path prefix: https://api.e2b.app
	Header  http.Header
	Secrets []string // redacted in every text
	// RefusedHint is what to do where a call is refused for its credentials; "" = check the key and its rights.
	RefusedHint string
	// Explain reads the code and the message of a provider's error answer, both "" when the
	// body has none. Nil = the common formats {"message"}, {"error":{"code","message"}},
	// {"detail"}.
	Explain func(status int, body []byte) (code, message string)
	// Gone says that the API documents 410 for an object that existed. For other APIs a 410
	// comes from a proxy and is no proof: fault.KindUnavailable.
	Gone    bool
	Stall   time.Duration // 0 = DefaultStall
	MaxBody int64         // bytes; 0 = DefaultMaxBody
	Tries   int           // 0 = DefaultTries
	// Definite says that an answer about one sandbox settles every question about it: it is gone, or
	// nothing inside answers. nil = none does. See Look.
	Definite func(*StatusError) bool
	// Passing says that an error answer passes within seconds, whatever its status, and that its request had no effect:
	// it is fault.KindUnavailable, and the request is repeated. nil = none does. See Client.WorkedAt.
	Passing func(*StatusError) bool
	Rate    float64 // requests per second at first; 0 = 150
	Burst   int     // 0 = 600
	// Transport sends the requests, with credentials that change; nil = that of Net.
	Transport http.RoundTripper
}

// Request is one call.
type Request struct {
	Op     string // the operation, for errors: "get abc"
	Method string // "" = GET
	Path   string // below Options.Base; Path() escapes its parts
	URL    string // an absolute address instead of Base and Path
	Query  url.Values
	Header http.Header // added to Options.Header; an empty value removes one
	JSON   any         // the body as JSON; nil = none
	Body   []byte      // the raw body, with Content-Type in Header
	// Idempotent allows repeating a request that has the same effect when it is sent twice.
	// Without it GET and HEAD are repeated, DELETE where it was not received (no connection,
	// 429), and POST after a 429 with a time.
	Again bool
	// Once forbids to repeat the request.
	Once    bool
	Timeout time.Duration // 0 = that of the client
	MaxBody int64         // 0 = that of the client
	// OneSandbox says that something inside one sandbox answers, or a proxy in front of it, or that the API
	// asks its runtime: its errors are fault.Error.OneSandbox, but for a request that did not reach the API.
	OneSandbox bool
	// OwnHost says that the sandbox has an address apart from the API's, which has a limit of its own: in a
	// look such a request holds no slot (WithSlot).
	OwnHost bool
	// Fresh is sent also where the look of its context knows the answer (Look).
	Fresh bool
	// Upgrade asks for another protocol on the connection, as in the header of that name: a Stream that
	// is answered with 101 has an Input.
	Upgrade string
	// Quiet is for a Stream that may say nothing for any time: it does not end after Options.Stall.
	Quiet bool
}

func (r Request) markScope(err error) error {
	f, ok := err.(*fault.Error) //nolint:errorlint // the outermost one is shown
	if !ok || !r.OneSandbox || !r.OwnHost && NotSent(err) {
		return err
	}
	own := *f // several requests may share it
	own.OneSandbox = true
	return &own
}

// Response is an answer with a status of 2xx and its whole body.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// SkewTolerated is the difference of two clocks up to which ages are usable.
const SkewTolerated = 30 * time.Second

// Client is the client of one API for one profile. It is safe for concurrent use.
type Client struct {
	net      Net
	o        Options
	base     *url.URL
	http     *http.Client
	pace     *pacer
	skew     *clockSkew
	lastSize atomic.Int64 // of the last body, in bytes
	workedAt atomic.Int64 // Unix time of the last answer of 2xx, in nanoseconds; 0 = none
	told     sync.Map     // odd fields that were traced
	learned  learned
}

// New makes a client; fault.KindUsage for a base that is no http(s) address and for certificates
// that cannot be read.
func New(n Net, o Options) (*Client, error) {
	n, o = n.withDefaults(), o.withDefaults()
	base, err := url.Parse(o.Base)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		shown := flatten(newRedactor(o.Secrets)(o.Base), maxText)
		return nil, fault.Usage("%q is not an http or https address", shown).At(o.Profile, "").WithHint("write it like https://api.example.com")
	}
	transport := o.Transport
	if transport == nil {
		if transport, err = n.newTransport(); err != nil {
			return nil, (&fault.Error{Kind: fault.KindUsage, Err: err}).At(o.Profile, "")
		}
	}
	c := &Client{
		net: n, o: o, base: base, pace: &pacer{bucket: rate.NewLimiter(rate.Limit(o.Rate), o.Burst), start: rate.Limit(o.Rate), burst: o.Burst}, skew: &clockSkew{},
		http: &http.Client{Transport: transport, CheckRedirect: checkRedirect},
	}
	c.learned.start(slices.Concat(o.Secrets, urlPasswords(o.Base, n.proxyConfig())))
	return c, nil
}

// urlPasswords are the passwords in the addresses of the base and of the proxies.
func urlPasswords(base string, p *httpproxy.Config) []string {
	var found []string
	for _, address := range []string{base, p.HTTPProxy, p.HTTPSProxy} {
		u, err := url.Parse(address)
		if err != nil {
			continue
		}
		if password, ok := u.User.Password(); ok {
			found = append(found, password)
		}
	}
	return found
}

func (n Net) withDefaults() Net {
	if n.Now == nil {
		n.Now = time.Now
	}
	if n.Lookup == nil {
		n.Lookup = func(string) (string, bool) { return "", false }
	}
	if n.Timeout <= 0 {
		n.Timeout = DefaultTimeout
	}
	return n
}

func (o Options) withDefaults() Options {
	set := func(v *int, otherwise int) {
		if *v <= 0 {
			*v = otherwise
		}
	}
	set(&o.Tries, DefaultTries)
	set(&o.Burst, defaultBurst)
	if o.Stall <= 0 {
		o.Stall = DefaultStall
	}
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.Rate <= 0 {
		o.Rate = defaultRate
	}
	return o
}

// maxIdle is how many idle connections to one host are kept: more than any sensible number of
// requests in flight, since a connection that is not kept is opened again for each request.
const maxIdle = 256

// newTransport makes a transport that reuses connections; with Net.Dial it uses no proxy.
func (n Net) newTransport() (http.RoundTripper, error) {
	t := &http.Transport{
		DialContext: n.Dial, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: n.Timeout, ExpectContinueTimeout: time.Second,
		// Without pings every attempt would use a connection that is dead without an error.
		HTTP2: &http.HTTP2Config{SendPingTimeout: n.Timeout / 2, PingTimeout: n.Timeout / 4},
	}
	if n.Dial == nil {
		t.DialContext = (&net.Dialer{Timeout: n.Timeout, KeepAlive: 30 * time.Second}).DialContext
		t.Proxy = n.Proxy()
	}
	trust, err := n.readTrust()
	return &lazyTrustTransport{plain: t, trust: trust}, err
}

// Proxy is the proxy of a request by the environment, for a transport of another library.
func (n Net) Proxy() func(*http.Request) (*url.URL, error) {
	proxy := n.withDefaults().proxyConfig().ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
}

// proxyConfig reads HTTPS_PROXY, HTTP_PROXY and NO_PROXY, also in lower case. Under CGI
// (REQUEST_METHOD) a client's header can set HTTP_PROXY.
func (n Net) proxyConfig() *httpproxy.Config {
	first := func(names ...string) string {
		for _, name := range names {
			if v, ok := n.Lookup(name); ok && v != "" {
				return v
			}
		}
		return ""
	}
	return &httpproxy.Config{
		HTTPProxy: first("HTTP_PROXY", "http_proxy"), HTTPSProxy: first("HTTPS_PROXY", "https_proxy"),
		NoProxy: first("NO_PROXY", "no_proxy"), CGI: first("REQUEST_METHOD") != "",
	}
}

// Path joins escaped parts: Path("sandboxes", id, "logs").
func Path(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + url.PathEscape(p))
	}
	return b.String()
}

// Base is the address in front of paths, without a slash at its end.
func (c *Client) Base() string { return strings.TrimRight(c.base.String(), "/") }

// Skew is how far the server's clock (its Date header) was ahead of this machine's at the last
// answer, to the second; false before the first answer, and where answers come from a cache that does not
// say how old they are.
func (c *Client) Skew() (time.Duration, bool) { return c.skew.lastSkew() }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Trace writes one line for -v, without secrets and control characters.
func (c *Client) Trace(format string, args ...any) { c.traceLine(format, args...) }

func (c *Client) traceLine(format string, args ...any) {
	if c.net.Trace != nil {
		c.net.Trace(c.Clean(fmt.Sprintf(format, args...)))
	}
}

// traceAnswer writes the result of one attempt for `-v`; size is in bytes, negative for a
// stream.
type traceAnswer func(status int, size int64, err error)

// traceRequest writes the request and returns the function that writes its answer. The answer
// repeats the address, since requests overlap. Headers are never shown.
func (c *Client) traceRequest(req *http.Request) traceAnswer {
	if c.net.Trace == nil {
		return func(int, int64, error) {}
	}
	began := time.Now()
	call := req.Method + " " + req.URL.String()
	c.traceLine("> %s", call)
	return func(status int, size int64, err error) {
		took := time.Since(began).Round(time.Millisecond)
		if err != nil {
			c.traceLine("! %s after %s: %v", call, took, err)
			return
		}
		c.traceLine("< %d %s %s %s", status, took, bytesText(size), call)
	}
}

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
