package httpx

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"sbx/internal/fault"
)

// maxErrorBody is how much of an error answer is read, in bytes.
const maxErrorBody = 4 << 10

// send makes one attempt and gives an answer of 2xx with its body still open.
func (c *Client) send(ctx context.Context, r Request) (*http.Response, error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return nil, err
	}
	done := c.traced(req)
	res, err := c.http.Do(req)
	if err != nil {
		err = c.broken(ctx, r, err)
		done(0, err)
		return nil, err
	}
	done(res.StatusCode, nil)
	c.skew.note(c.net.Now(), res.Header)
	if res.StatusCode/100 == 2 {
		c.pace.well()
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	if err != nil && len(text) == 0 && ctx.Err() != nil {
		return nil, c.broken(ctx, r, err)
	}
	return nil, c.refused(r, res, text)
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
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
			return nil, fault.New(fault.KindUnknown, "the request cannot be written: %w", err).At(c.o.Profile, r.Op)
		}
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, fault.Usage("%s", c.clean(err.Error())).At(c.o.Profile, r.Op)
	}
	if len(body) == 0 {
		req.Body, req.GetBody = nil, nil
	}
	c.headers(req, r)
	return req, nil
}

// headers sets those of the client, then those of the request, where an empty
// value takes one away.
func (c *Client) headers(req *http.Request, r Request) {
	if c.o.Header != nil {
		req.Header = c.o.Header.Clone()
	}
	if c.net.Agent != "" {
		req.Header.Set("User-Agent", c.net.Agent)
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	if r.JSON != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, values := range r.Header {
		if len(values) == 0 || values[0] == "" {
			req.Header.Del(name)
			continue
		}
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
}

// refused is the fault of an answer other than 2xx.
func (c *Client) refused(r Request, res *http.Response, body []byte) error {
	s := &StatusError{Status: res.StatusCode, Header: res.Header, Body: []byte(c.hide(string(body)))}
	explain := c.o.Explain
	if explain == nil {
		explain = Explain
	}
	s.Code, s.Message = explain(res.StatusCode, body)
	if s.Message == "" && isHTML(res.Header, body) {
		s.Message = "a web page came instead of data"
	}
	s.Code, s.Message = c.clean(s.Code), c.clean(s.Message)
	s.RetryAfter, _ = retryAfter(c.net.Now(), res)
	if s.Status == http.StatusTooManyRequests || s.Status == http.StatusServiceUnavailable {
		c.pace.throttled()
	}
	e := fault.New(KindOf(s.Status), "%w", s).At(c.o.Profile, r.Op)
	e.RetryAfter = s.RetryAfter
	if e.Kind == fault.KindAuth {
		e.Hint = "is the key right, and has it the right to do this? `sbx doctor --provider " + c.o.Profile + "` says more"
	}
	return e
}

// Explain reads the common spellings of an error answer: {"message","code"},
// {"error":{"code","message"}}, {"error":"..."}, {"detail":"..."}.
func Explain(_ int, body []byte) (code, message string) {
	var a struct {
		Code      any             `json:"code"`
		ErrorCode string          `json:"error_code"`
		Message   any             `json:"message"`
		Detail    any             `json:"detail"`
		Error     json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &a) != nil {
		return "", ""
	}
	code, _ = a.Code.(string)
	if a.ErrorCode != "" {
		code = a.ErrorCode
	}
	for _, candidate := range []any{a.Message, a.Detail} {
		if text, ok := candidate.(string); ok && message == "" {
			message = text
		}
	}
	var inner struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	var text string
	switch {
	case json.Unmarshal(a.Error, &inner) == nil && inner.Message != "":
		return inner.Code, inner.Message
	case message == "" && json.Unmarshal(a.Error, &text) == nil:
		message = text
	}
	return code, message
}

// isHTML knows a web page by its type or its first byte.
func isHTML(h http.Header, body []byte) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/html") || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

// firstWords is the start of a body, for an error.
func firstWords(body []byte) string {
	const most = 60
	if len(body) > most {
		body = body[:most]
	}
	return strings.ToValidUTF8(string(body), "?")
}

// redirected refuses a way to another host or out of TLS: the credentials and
// what is asked belong to one server.
func redirected(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case req.URL.Host != first.URL.Host, first.URL.Scheme == "https" && req.URL.Scheme != "https":
		return fault.New(fault.KindUnavailable, "it redirects to %s://%s, which is not followed", req.URL.Scheme, req.URL.Host).
			WithHint("is the url right? credentials go to the configured host alone")
	case first.Method != http.MethodGet && first.Method != http.MethodHead:
		return fault.New(fault.KindUnavailable, "it redirects a %s, which is not followed", first.Method)
	case len(via) > 3:
		return fault.New(fault.KindUnavailable, "it redirects in circles")
	}
	return nil
}

// stripped is a base without the slash at its end.
func stripped(u *url.URL) string { return strings.TrimRight(u.String(), "/") }
