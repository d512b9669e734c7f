package httpx

import (
	"encoding/json"
	"io"
	"net/http"

	"sbx/internal/fault"
)

const (
	// maxErrorBody is how much of an error answer is kept, in bytes.
	maxErrorBody = 4 << 10
	// overlap is how much more is read, so that a secret at the cut is whole when
	// it is hidden.
	overlap = 4 << 10
)

// refused is the fault of an answer other than 2xx.
func (c *Client) refused(r Request, res *http.Response, body []byte) error {
	s := &StatusError{Status: res.StatusCode, Header: res.Header, Body: []byte(c.hide(string(body)))}
	s.Body = s.Body[:min(len(s.Body), maxErrorBody)]
	explain := c.o.Explain
	if explain == nil {
		explain = Explain
	}
	s.Code, s.Message = explain(res.StatusCode, body)
	if s.Message == "" && isHTML(res.Header, body) {
		s.Message = "a web page came instead of data"
	}
	s.Code, s.Message = c.clean(s.Code), c.clean(s.Message)
	s.RetryAfter = retryAfter(c.net.Now(), res)
	kind := KindOf(s.Status)
	if kind == fault.KindGone && !c.o.Gone {
		kind = fault.KindUnavailable
	}
	e := fault.New(kind, "%w", s).At(c.o.Profile, r.Op)
	e.RetryAfter, e.Hint = s.RetryAfter, c.hint(r, s)
	return e
}

// hint is what to do about a status.
func (c *Client) hint(r Request, s *StatusError) string {
	switch {
	case KindOf(s.Status) == fault.KindAuth:
		return "is the key right, and has it the right to do this? `sbx doctor --provider " + c.o.Profile + "` says more"
	case s.RetryAfter > 0:
		return "it asks to wait for " + s.RetryAfter.String()
	case s.Status == http.StatusTooManyRequests:
		return "too many requests: wait a little, or do less at a time"
	case s.Status/100 == 3:
		return "is the url right? requests go to " + c.clean(c.host(r))
	}
	return ""
}

// errorBody reads the start of an error answer. One that breaks off still says
// its status.
func errorBody(res *http.Response) ([]byte, error) {
	return io.ReadAll(io.LimitReader(res.Body, maxErrorBody+overlap))
}

// Explain reads the common spellings of an error answer: {"message","code"},
// {"error":{"code","message"}}, {"error":"..."}, {"detail":"..."}.
func Explain(_ int, body []byte) (code, message string) {
	var a struct {
		Code      any             `json:"code"`
		ErrorCode any             `json:"error_code"`
		Message   any             `json:"message"`
		Detail    any             `json:"detail"`
		Error     json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &a) != nil {
		return "", ""
	}
	var inner struct {
		Code    any `json:"code"`
		Message any `json:"message"`
	}
	var plain any
	if json.Unmarshal(a.Error, &inner) != nil {
		_ = json.Unmarshal(a.Error, &plain) // nothing is an answer as well
	}
	if text, ok := inner.Message.(string); ok && text != "" {
		return firstText(inner.Code), text
	}
	return firstText(a.ErrorCode, a.Code), firstText(a.Message, a.Detail, plain)
}

// firstText is the first of the values that is a text with something in it; a
// number in place of a code repeats the status.
func firstText(values ...any) string {
	for _, v := range values {
		if text, ok := v.(string); ok && text != "" {
			return text
		}
	}
	return ""
}
