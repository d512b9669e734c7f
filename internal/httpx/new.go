package httpx

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpproxy"

	"sbx/internal/fault"
)

// Client talks to one API on behalf of one profile. It is safe for concurrent
// use; connections are reused.
type Client struct {
	net  Net
	o    Options
	base *url.URL
	http *http.Client
	pace *pace
	skew *skew
	read atomic.Int64 // bytes of the last body
	hide func(string) string
}

// New makes a client; fault.KindUsage for a base that is no http(s) address and
// for certificates that cannot be read.
func New(n Net, o Options) (*Client, error) {
	n, o = n.complete(), o.complete()
	base, err := url.Parse(o.Base)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		shown := line(redactor(o.Secrets)(o.Base), mostText)
		return nil, fault.Usage("%q is not an http or https address", shown).At(o.Profile, "").WithHint("write it like https://api.example.com")
	}
	transport, err := n.transport()
	if err != nil {
		return nil, (&fault.Error{Kind: fault.KindUsage, Err: err}).At(o.Profile, "")
	}
	return &Client{
		net: n, o: o, base: base, pace: newPace(o.Rate, o.Burst), skew: &skew{},
		hide: redactor(slices.Concat(o.Secrets, passwords(o.Base, n.proxies()))),
		http: &http.Client{Transport: transport, CheckRedirect: redirected},
	}, nil
}

// passwords are those that stand in addresses: the base and the proxies.
func passwords(base string, p *httpproxy.Config) []string {
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

func (n Net) complete() Net {
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

func (o Options) complete() Options {
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

// transport reuses connections; with a Dial of its own it asks no proxy.
func (n Net) transport() (http.RoundTripper, error) {
	t := &http.Transport{
		DialContext: n.Dial, ForceAttemptHTTP2: true,
		MaxIdleConns: 64, MaxIdleConnsPerHost: 32, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: n.Timeout, ExpectContinueTimeout: time.Second,
		// A connection that died in silence would take every try with it.
		HTTP2: &http.HTTP2Config{SendPingTimeout: n.Timeout / 2, PingTimeout: n.Timeout / 4},
	}
	if n.Dial == nil {
		t.DialContext = (&net.Dialer{Timeout: n.Timeout, KeepAlive: 30 * time.Second}).DialContext
		proxy := n.proxies().ProxyFunc()
		t.Proxy = func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
	}
	trust, err := n.trusted()
	return &trusting{plain: t, trust: trust}, err
}

// proxies reads HTTPS_PROXY, HTTP_PROXY and NO_PROXY, also in lower case. Under
// CGI (REQUEST_METHOD) HTTP_PROXY may be a header of the client's.
func (n Net) proxies() *httpproxy.Config {
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

// Base is the address that paths are put behind, without a slash at its end.
func (c *Client) Base() string { return strings.TrimRight(c.base.String(), "/") }

// Skew is how far the server's clock (its Date header) was ahead of ours at
// the last answer, to the second; false before any.
func (c *Client) Skew() (time.Duration, bool) { return c.skew.last() }

// Close lets idle connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// HTTP is the client underneath, for protocols that begin as a request
// (WebSocket). It has the same dialer, trust and redirect rules, and no retry.
func (c *Client) HTTP() *http.Client { return c.http }
