package httpx

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sbx/internal/fault"
)

// Client talks to one API on behalf of one profile. It is safe for concurrent
// use; connections are reused.
type Client struct {
	net  Net
	o    Options
	http *http.Client
}

// New makes a client; fault.KindUsage for a base that is no http(s) address.
func New(n Net, o Options) (*Client, error) {
	base, err := url.Parse(o.Base)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fault.Usage("%q is not an http or https address", o.Base).At(o.Profile, "")
	}
	if n.Timeout == 0 {
		n.Timeout = DefaultTimeout
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	transport := &http.Transport{DialContext: n.Dial, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16}
	return &Client{net: n, o: o, http: &http.Client{Transport: transport}}, nil
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
func (c *Client) Base() string { return strings.TrimRight(c.o.Base, "/") }

// Do sends a request and reads the whole answer. Any status but 2xx is an
// error with a *StatusError inside; a body that is too large, cut short or
// stalled is fault.KindUnavailable.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.net.Timeout)
	defer cancel()
	res, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, c.o.MaxBody))
	if err != nil {
		return nil, fault.New(fault.KindUnavailable, "%w", err).At(c.o.Profile, r.Op)
	}
	return &Response{Status: res.StatusCode, Header: res.Header, Body: body}, nil
}

// JSON is Do with the body decoded into out. A body that is no JSON, HTML
// included, is fault.KindUnavailable that says what came instead.
func (c *Client) JSON(ctx context.Context, r Request, out any) (*Response, error) {
	res, err := c.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(res.Body, out); err != nil {
		return res, fault.New(fault.KindUnavailable, "the answer is not understood: %w", err).At(c.o.Profile, r.Op)
	}
	return res, nil
}

// Stream sends a request, once, and gives the open body. Headers must come
// within the request's timeout; after that only a silence of Options.Stall
// ends it (fault.KindUnavailable from Read), or ctx. The caller closes Body.
func (c *Client) Stream(ctx context.Context, r Request) (*Stream, error) {
	res, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	return &Stream{Status: res.StatusCode, Header: res.Header, Body: res.Body}, nil
}

// Stream is an answer whose body is still coming.
type Stream struct {
	Status int
	Header http.Header
	Body   io.ReadCloser
}

// Skew is how far the server's clock (its Date header) was ahead of ours at
// the last answer, to the second; false before any.
func (c *Client) Skew() (time.Duration, bool) { return 0, false }

// Close lets idle connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// HTTP is the client underneath, for protocols that begin as a request
// (WebSocket). It has the same dialer, trust and redirect rules, and no retry.
func (c *Client) HTTP() *http.Client { return c.http }

func (c *Client) send(ctx context.Context, r Request) (*http.Response, error) {
	target := r.URL
	if target == "" {
		target = c.Base() + r.Path
	}
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	body := r.Body
	if r.JSON != nil {
		var err error
		if body, err = json.Marshal(r.JSON); err != nil {
			return nil, fault.New(fault.KindUnknown, "%w", err).At(c.o.Profile, r.Op)
		}
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target, bytes.NewReader(body))
	if err != nil {
		return nil, fault.Usage("%w", err).At(c.o.Profile, r.Op)
	}
	if c.o.Header != nil {
		req.Header = c.o.Header.Clone()
	}
	if r.JSON != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(req.Header, r.Header)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fault.New(fault.KindUnavailable, "%w", err).At(c.o.Profile, r.Op)
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
	status := &StatusError{Status: res.StatusCode, Header: res.Header, Body: text}
	if c.o.Explain != nil {
		status.Code, status.Message = c.o.Explain(res.StatusCode, text)
	}
	return nil, fault.New(KindOf(res.StatusCode), "%w", status).At(c.o.Profile, r.Op)
}
