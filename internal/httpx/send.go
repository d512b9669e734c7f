package httpx

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"sbx/internal/fault"
)

// send makes one attempt and gives an answer of 2xx with its body still open,
// and the function that the trace of it awaits.
func (c *Client) send(ctx context.Context, r Request) (*http.Response, told, error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	tell := c.traced(req)
	res, err := c.http.Do(req)
	if err != nil {
		err = c.broken(ctx, r, err)
		tell(0, 0, err)
		return nil, nil, err
	}
	c.skew.note(c.net.Now(), res.Header)
	c.pace.heard(res.StatusCode)
	if res.StatusCode/100 == 2 {
		return res, tell, nil
	}
	defer func() { _ = res.Body.Close() }()
	text, err := errorBody(res)
	if err != nil && ctx.Err() != nil && len(text) == 0 {
		err = c.broken(ctx, r, err)
		tell(0, 0, err)
		return nil, nil, err
	}
	tell(res.StatusCode, int64(len(text)), nil)
	return nil, nil, c.refused(r, res, text)
}

// dotted says that a path has an empty or dotted part: a server or a proxy reads it as
// another path, and with it another object.
func dotted(path string) bool {
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if part == "" || part == "." || part == ".." {
			return path != "" && path != "/"
		}
	}
	return false
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	if dotted(r.Path) {
		return nil, fault.Usage("%q cannot stand in an address: it names something else there", line(r.Path, mostQuoted)).At(c.o.Profile, r.Op)
	}
	body, err := payload(r)
	if err != nil {
		return nil, fault.New(fault.KindUnknown, "the request cannot be written: %w", err).At(c.o.Profile, r.Op)
	}
	req, err := http.NewRequestWithContext(ctx, r.method(), c.target(r), bytes.NewReader(body))
	if err != nil {
		return nil, fault.Usage("the request cannot be written: %s", c.trouble(r, err).text).At(c.o.Profile, r.Op)
	}
	if len(body) == 0 {
		req.Body, req.GetBody = nil, nil
	}
	c.headers(req, r)
	return req, nil
}

// target is the whole address of a request.
func (c *Client) target(r Request) string {
	target := r.URL
	if target == "" {
		target = c.Base() + r.Path
	}
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	return target
}

func payload(r Request) ([]byte, error) {
	if r.JSON == nil {
		return r.Body, nil
	}
	return json.Marshal(r.JSON)
}

func (r Request) method() string {
	if r.Method == "" {
		return http.MethodGet
	}
	return r.Method
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
