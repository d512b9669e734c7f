package httpx

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"sbx/internal/fault"
)

// mostQuoted is how many characters of an answer that is none are shown.
const mostQuoted = 60

// JSON is Do with the body decoded into out. A body that is no JSON, HTML
// included, is fault.KindUnavailable that says what came instead.
func (c *Client) JSON(ctx context.Context, r Request, out any) (*Response, error) {
	res, err := c.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(res.Body, out); err != nil {
		return res, r.scoped(c.garbage(r, res, err))
	}
	return res, nil
}

// garbage says what came instead of JSON.
func (c *Client) garbage(r Request, res *Response, err error) error {
	switch start := c.start(res.Body); {
	case isHTML(res.Header, res.Body):
		return fault.New(fault.KindUnavailable, "HTML came instead of data: %q", start).At(c.o.Profile, r.Op).
			WithHint("is the URL right? requests go to %s", c.clean(c.host(r)))
	case len(res.Body) == 0:
		return fault.New(fault.KindUnavailable, "the answer is empty").At(c.o.Profile, r.Op).
			WithHint("try later; if it stays so, look at what answers at %s", c.clean(c.host(r)))
	default:
		return fault.New(fault.KindUnavailable, "the answer is not understood: %s: %q", c.clean(err.Error()), start).At(c.o.Profile, r.Op).
			WithHint("try later; if it stays so, the API has changed or the URL is not that of %s", c.o.Profile)
	}
}

// start is how a body begins. Secrets are hidden before it is cut, so that no
// half of one is left.
func (c *Client) start(body []byte) string {
	const enough = 4 << 10 // bytes, so that a large body costs nothing
	return line(c.hide(string(body[:min(len(body), enough)])), mostQuoted)
}

// isHTML knows a web page by its type or its first byte.
func isHTML(h http.Header, body []byte) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/html") || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}
