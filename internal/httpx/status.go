package httpx

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sbx/internal/fault"
)

// StatusError is an answer other than 2xx. It is inside the fault.Error that a
// call returns; StatusOf finds it.
type StatusError struct {
	Status     int
	Code       string // the provider's code: "sandbox_stopped"
	Message    string // the provider's text, redacted; untrusted
	RetryAfter time.Duration
	Path       string // of the request; it is never shown
	Body       []byte // the first 4 KiB, redacted
	Header     http.Header

	passing bool // Options.Passing
}

// Error is the status with the provider's message.
func (e *StatusError) Error() string {
	text := e.Message
	if text == "" {
		text = http.StatusText(e.Status)
	}
	if e.Code != "" {
		text += " (" + e.Code + ")"
	}
	return fmt.Sprintf("HTTP %d: %s", e.Status, text)
}

// StatusOf finds the answer behind an error; nil when none came.
func StatusOf(err error) *StatusError {
	s, _ := errors.AsType[*StatusError](err)
	return s
}

// Status is the HTTP status behind an error, 0 when no answer came.
func Status(err error) int {
	if s := StatusOf(err); s != nil {
		return s.Status
	}
	return 0
}

// AnsweredMissing says that the API has answered that there is no such object.
func AnsweredMissing(err error) bool { return Status(err) == http.StatusNotFound }

// KindOf is the kind of a status in most APIs: 401 and 403 auth, 404 not_found, 410 gone, 405 and 501
// unsupported, 409 and other 4xx unknown, 408, 425, 429 and 5xx unavailable.
func KindOf(status int) fault.Kind {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fault.KindAuth
	case status == http.StatusNotFound:
		return fault.KindNotFound
	case status == http.StatusGone:
		return fault.KindGone
	case status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		return fault.KindUnsupported
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status >= 500:
		return fault.KindUnavailable
	}
	return fault.KindUnknown
}

// Refused says that the request of this answer had no effect: it was redirected or is invalid.
// 408 is no refusal: the request was too slow.
func Refused(status int) bool {
	return status >= http.StatusMultipleChoices && status < http.StatusInternalServerError && status != http.StatusRequestTimeout
}

// RefusesChange says that an answer refuses a change of an object for good: it is beyond a limit, or the object is in
// another state.
func RefusesChange(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusConflict, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// KindOfRefusal is KindOf for a request that creates an object: the request is invalid, the
// account has reached a limit, or a retry may succeed.
func KindOfRefusal(status int) fault.Kind {
	switch status {
	case http.StatusBadRequest, http.StatusLengthRequired, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return fault.KindUsage
	case http.StatusPaymentRequired:
		return fault.KindRefused
	case http.StatusConflict:
		return fault.KindUnavailable
	}
	return KindOf(status)
}

const (
	// maxErrorBody is how many bytes of an error answer are kept.
	maxErrorBody = 4 << 10
	// redactionMargin is how many bytes more are read, so that a secret at the cut is complete
	// when it is redacted.
	redactionMargin = 4 << 10
)

func (c *Client) statusFault(r Request, res *http.Response, body []byte) error {
	s := &StatusError{Status: res.StatusCode, Header: res.Header, Body: []byte(c.hide(string(body)))}
	if res.Request != nil {
		s.Path = res.Request.URL.Path
	}
	s.Body = s.Body[:min(len(s.Body), maxErrorBody)]
	explain := c.o.Explain
	if explain == nil {
		explain = Explain
	}
	s.Code, s.Message = explain(res.StatusCode, body)
	if s.Message == "" && isHTML(res.Header, body) {
		s.Message = "the answer is a web page instead of JSON"
	}
	s.Code, s.Message = c.Clean(s.Code), c.Clean(s.Message)
	s.RetryAfter = RetryAfter(c.net.Now(), res)
	kind, hint := KindOf(s.Status), c.statusHint(r, s)
	switch {
	case kind == fault.KindGone && !c.o.Gone:
		kind = fault.KindUnavailable
	case c.o.Passing != nil && c.o.Passing(s):
		s.passing, kind, hint = true, fault.KindUnavailable, "try again: it passes"
	}
	e := fault.New(kind, "%w", s).At(c.o.Profile, r.Op)
	e.RetryAfter, e.Hint = s.RetryAfter, hint
	return e
}

func (c *Client) statusHint(r Request, s *StatusError) string {
	switch {
	case KindOf(s.Status) == fault.KindAuth && c.o.RefusedHint != "":
		return c.o.RefusedHint
	case KindOf(s.Status) == fault.KindAuth:
		return "check the key and its rights: `sbx doctor --provider " + c.o.Profile + "` shows more"
	case s.RetryAfter > 0:
		return "the server asks to wait for " + s.RetryAfter.String()
	case s.Status == http.StatusTooManyRequests:
		return "too many requests: wait, or send fewer at a time"
	case s.Status/100 == 3:
		return "check the url: requests go to " + c.Clean(c.hostOf(r))
	}
	return ""
}

// Explain reads the common formats of an error answer: {"message","code"},
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
		_ = json.Unmarshal(a.Error, &plain) // an error is ignored
	}
	if text, ok := inner.Message.(string); ok && text != "" {
		return firstText(inner.Code), text
	}
	return firstText(a.ErrorCode, a.Code), firstText(a.Message, a.Detail, plain)
}

// firstText is the first of the values that is a text and not empty. A number is no code: it
// repeats the status.
func firstText(values ...any) string {
	for _, v := range values {
		if text, ok := v.(string); ok && text != "" {
			return text
		}
	}
	return ""
}
