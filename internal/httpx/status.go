package httpx

import (
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
	Code       string // the provider's word for it: "sandbox_stopped"
	Message    string // the provider's text, redacted; untrusted
	RetryAfter time.Duration
	Body       []byte // as it came, up to 4 KiB, redacted
	Header     http.Header
}

// HTTPStatus is Status, for rooms that know no HTTP.
func (e *StatusError) HTTPStatus() int { return e.Status }

// Error says the status and what the provider said.
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

// KindOf gives what a status means unless a provider knows better (DESIGN
// section 4): 401 and 403 auth, 404 not_found, 410 gone, 405 and 501
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

// Refused says of an answer that the request has done nothing: it was sent elsewhere,
// or is wrong as it stands. 408 says that it did not come in time, which is no refusal.
func Refused(status int) bool {
	return status >= http.StatusMultipleChoices && status < http.StatusInternalServerError && status != http.StatusRequestTimeout
}

// KindOfRefusal is KindOf for a request that shall make something: what was asked for
// is wrong, the account allows no more, or the same may pass a moment later.
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
