package httpx

import (
	"net/http"
	"time"
)

// RetryAfter lets the tests read one header.
func RetryAfter(now time.Time, status int, h http.Header) time.Duration {
	return retryAfter(now, &http.Response{StatusCode: status, Header: h})
}

// Redactor lets the tests hide.
func Redactor(secrets []string) func(string) string { return newRedactor(secrets) }

// Line lets the tests flatten.
func Line(text string, most int) string { return flatten(text, most) }
