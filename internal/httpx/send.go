package httpx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
)

// sendOnce makes one attempt. It returns an answer of 2xx with its body open, and the function
// that ends its trace.
func (c *Client) sendOnce(ctx context.Context, r Request) (*http.Response, traceAnswer, error) {
	req, err := c.newRequest(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	answered := inSlot(ctx, r)
	tell := c.traceRequest(req)
	res, err := c.http.Do(req)
	answered()
	if err != nil {
		err = c.requestFault(ctx, r, err)
		tell(0, 0, err)
		return nil, nil, err
	}
	c.skew.record(c.net.Now(), res.Header)
	c.pace.recordStatus(res.StatusCode)
	if res.StatusCode/100 == 2 || r.Upgrade != "" && res.StatusCode == http.StatusSwitchingProtocols {
		c.workedAt.Store(c.net.Now().UnixNano())
		return res, tell, nil
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBody+redactionMargin)) // of an answer that breaks off, the status still counts
	if err != nil && ctx.Err() != nil && len(text) == 0 {
		err = c.requestFault(ctx, r, err)
		tell(0, 0, err)
		return nil, nil, err
	}
	tell(res.StatusCode, int64(len(text)), nil)
	return nil, nil, c.statusFault(r, res, text)
}

// WorkedAt is when the last request was answered with 2xx; zero = none was.
func (c *Client) WorkedAt() time.Time {
	if at := c.workedAt.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// hasDotSegment says that a path has an empty part, "." or "..": a server or a proxy would
// resolve it to another path, and so to another object.
func hasDotSegment(path string) bool {
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if part == "" || part == "." || part == ".." {
			return path != "" && path != "/"
		}
	}
	return false
}

func (c *Client) newRequest(ctx context.Context, r Request) (*http.Request, error) {
	if hasDotSegment(r.Path) {
		return nil, fault.Usage("%q cannot be part of an address: it has another meaning there", flatten(r.Path, maxQuoted)).At(c.o.Profile, r.Op)
	}
	body, err := requestBody(r)
	if err != nil {
		return nil, fault.New(fault.KindUnknown, "the request cannot be written: %w", err).At(c.o.Profile, r.Op)
	}
	req, err := http.NewRequestWithContext(ctx, r.httpMethod(), c.requestURL(r), bytes.NewReader(body))
	if err != nil {
		return nil, fault.Usage("the request cannot be written: %s", c.describeFailure(r, err).text).At(c.o.Profile, r.Op)
	}
	if len(body) == 0 {
		req.Body, req.GetBody = nil, nil
	}
	c.setHeaders(req, r)
	return req, nil
}

func (c *Client) requestURL(r Request) string {
	target := r.URL
	if target == "" {
		target = c.Base() + r.Path
	}
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	return target
}

func requestBody(r Request) ([]byte, error) {
	if r.JSON == nil {
		return r.Body, nil
	}
	return json.Marshal(r.JSON)
}

func (r Request) httpMethod() string {
	if r.Method == "" {
		return http.MethodGet
	}
	return r.Method
}

// setHeaders sets the headers of the client, then those of the request, in which an empty value
// removes a header.
func (c *Client) setHeaders(req *http.Request, r Request) {
	if c.o.Header != nil {
		req.Header = c.o.Header.Clone()
	}
	if c.net.Agent != "" {
		req.Header.Set("User-Agent", c.net.Agent)
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	req.Header.Set("Cache-Control", "no-cache") // a cached answer is not the provider's present state
	if r.JSON != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.Upgrade != "" {
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", r.Upgrade)
	}
	for name, values := range r.Header {
		if len(values) == 0 || values[0] == "" {
			req.Header.Del(name)
			continue
		}
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
}

// Do sends a request and reads the whole answer. Any status but 2xx is an error around a
// *StatusError; a body that is too large, cut short or stalled is fault.KindUnavailable.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	if err := settled(ctx, r); err != nil {
		return nil, err
	}
	res, err := c.doRetried(ctx, r, func() (*Response, error) { return c.doOnce(ctx, r) })
	return res, r.markScope(err)
}

func (c *Client) requestTimeout(r Request) time.Duration {
	if r.Timeout > 0 {
		return r.Timeout
	}
	return c.net.Timeout
}

func (c *Client) doOnce(ctx context.Context, r Request) (*Response, error) {
	limit := c.requestTimeout(r)
	inner, cancel := context.WithTimeoutCause(ctx, limit, noAnswerError{limit})
	defer cancel()
	res, tell, err := c.sendOnce(inner, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := c.readAll(res, r)
	if err != nil {
		err = c.requestFault(inner, r, err)
		tell(0, 0, err)
		return nil, err
	}
	tell(res.StatusCode, int64(len(body)), nil)
	return &Response{Status: res.StatusCode, Header: res.Header, Body: body}, nil
}

// expectedSize is the probable size of a body: its Content-Length, or the size of the last
// body, since the pages of a list are alike.
func (c *Client) expectedSize(said int64) int {
	const most = 64 << 10 // bytes that may be allocated in vain
	if said >= 0 {
		return int(said)
	}
	return int(min(c.lastSize.Load(), most))
}

// readAll reads a body up to the limit; a larger one is errTooLarge.
func (c *Client) readAll(res *http.Response, r Request) ([]byte, error) {
	limit := r.MaxBody
	if limit <= 0 {
		limit = c.o.MaxBody
	}
	if res.ContentLength > limit {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", errTooLarge, res.ContentLength, limit)
	}
	body, err := readParts(res.Body, limit, c.expectedSize(res.ContentLength)+bytes.MinRead)
	c.lastSize.Store(int64(len(body)))
	return body, err
}

// maxPart is how much of a body without a length is allocated at once.
const maxPart = 1 << 20

// readParts reads a body in parts, the first of a given size: one that grows needs no more than itself, and one that
// is too large nothing beside the limit.
func readParts(r io.Reader, limit int64, size int) ([]byte, error) {
	var full [][]byte
	part := make([]byte, 0, size)
	for left := limit; ; {
		if len(part) == cap(part) {
			full = append(full, part)
			part = make([]byte, 0, min(2*cap(part), maxPart))
		}
		n, err := r.Read(part[len(part):cap(part)])
		part = part[:len(part)+n]
		if left -= int64(n); left < 0 {
			return nil, fmt.Errorf("%w: the limit is %d bytes", errTooLarge, limit)
		}
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		if len(full) == 0 {
			return part, err
		}
		return slices.Concat(append(full, part)...), err
	}
}

const maxRedirects = 3

// checkRedirect refuses redirects to another host or out of TLS, since the credentials are those
// of one server.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case !strings.EqualFold(req.URL.Host, first.URL.Host), first.URL.Scheme == "https" && req.URL.Scheme != "https":
		return fault.New(fault.KindUnavailable, "%w to %s://%s, which is not followed", errRedirect, req.URL.Scheme, req.URL.Host).
			WithHint("check the url: credentials are sent only to the configured host")
	case first.Method != http.MethodGet && first.Method != http.MethodHead:
		return fault.New(fault.KindUnavailable, "%w a %s, which is not followed", errRedirect, first.Method).
			WithHint("check the url, including https:// and host")
	case len(via) > maxRedirects:
		return fault.New(fault.KindUnavailable, "%w more than %d times", errRedirect, maxRedirects)
	}
	return nil
}

// Stream sends a request once and returns the open body. The headers must come within the
// request's timeout; after that the stream ends with ctx or after Options.Stall without a byte
// (fault.KindUnavailable from Read). The caller closes Body.
func (c *Client) Stream(ctx context.Context, r Request) (*Stream, error) {
	if err := settled(ctx, r); err != nil {
		return nil, err
	}
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
		return nil, r.markScope(c.settles(ctx, r, err))
	}
	tell(res.StatusCode, -1, nil)
	s := &Stream{Status: res.StatusCode, Header: res.Header, Body: c.watchBody(inner, cancel, r, res.Body)}
	if input, ok := res.Body.(Input); ok {
		s.Input = input
		context.AfterFunc(inner, func() { _ = res.Body.Close() }) // net/http leaves such a connection alone
	}
	return s, nil
}

// Stream is an answer whose body is still coming.
type Stream struct {
	Status int
	Header http.Header
	Body   io.ReadCloser
	Input  Input // to the server, after an upgrade; nil = there is none
}

// Input is the client's side of an upgraded connection. Writes may block; they end with the stream.
type Input interface {
	io.Writer
	// CloseWrite tells the server that nothing more comes, where the connection can be half closed.
	CloseWrite() error
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
	if !w.r.Quiet {
		w.timer.Reset(w.c.o.Stall)
	}
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
