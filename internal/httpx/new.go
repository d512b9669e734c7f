package httpx

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
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
	hide func(string) string
}

// New makes a client; fault.KindUsage for a base that is no http(s) address and
// for certificates that cannot be read.
func New(n Net, o Options) (*Client, error) {
	base, err := url.Parse(o.Base)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fault.Usage("%q is not an http or https address", o.Base).At(o.Profile, "").WithHint("write it like https://api.example.com")
	}
	n, o = n.complete(), o.complete()
	transport, err := n.transport()
	if err != nil {
		return nil, fault.Usage("%w", err).At(o.Profile, "")
	}
	return &Client{
		net: n, o: o, base: base, pace: newPace(o.Rate, o.Burst), skew: &skew{},
		hide: redactor(append(o.Secrets, userinfo(base)...)),
		http: &http.Client{Transport: transport, CheckRedirect: redirected},
	}, nil
}

func userinfo(u *url.URL) []string {
	if password, ok := u.User.Password(); ok {
		return []string{password}
	}
	return nil
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
func (n Net) transport() (*http.Transport, error) {
	t := &http.Transport{
		DialContext: n.Dial, ForceAttemptHTTP2: true,
		MaxIdleConns: 64, MaxIdleConnsPerHost: 32, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: n.Timeout, ExpectContinueTimeout: time.Second,
	}
	if n.Dial == nil {
		t.DialContext = (&net.Dialer{Timeout: n.Timeout, KeepAlive: 30 * time.Second}).DialContext
		proxy := n.proxies().ProxyFunc()
		t.Proxy = func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
	}
	roots, err := n.roots()
	if roots != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return t, err
}

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

// roots adds the certificates of SSL_CERT_FILE and SSL_CERT_DIR to the
// system's; nil = the system's alone.
func (n Net) roots() (*x509.CertPool, error) {
	var files []string
	if f, ok := n.Lookup("SSL_CERT_FILE"); ok && f != "" {
		files = append(files, f)
	}
	if dirs, ok := n.Lookup("SSL_CERT_DIR"); ok && dirs != "" {
		for _, dir := range filepath.SplitList(dirs) {
			found, _ := filepath.Glob(filepath.Join(dir, "*")) // the pattern is well-formed
			files = append(files, found...)
		}
	}
	if len(files) == 0 {
		return nil, nil //nolint:nilnil // none is a plain answer
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for i, f := range files {
		pem, err := os.ReadFile(f)
		if err != nil && i == 0 && !strings.HasSuffix(f, "/") {
			return nil, err
		}
		pool.AppendCertsFromPEM(pem)
	}
	return pool, nil
}

// Path joins escaped parts: Path("sandboxes", id, "logs").
func Path(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + url.PathEscape(p))
	}
	return b.String()
}

// Base is the address that paths are put behind.
func (c *Client) Base() string { return stripped(c.base) }

// Skew is how far the server's clock (its Date header) was ahead of ours at
// the last answer, to the second; false before any.
func (c *Client) Skew() (time.Duration, bool) { return c.skew.last() }

// Close lets idle connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// HTTP is the client underneath, for protocols that begin as a request
// (WebSocket). It has the same dialer, trust and redirect rules, and no retry.
func (c *Client) HTTP() *http.Client { return c.http }
