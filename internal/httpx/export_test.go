package httpx

import (
	"net/http"
	"time"
)

// RetryAfter exports the parser of one header.
func RetryAfter(now time.Time, status int, h http.Header) time.Duration {
	return retryAfter(now, &http.Response{StatusCode: status, Header: h})
}

// Redactor exports the redaction.
func Redactor(secrets []string) func(string) string { return newRedactor(secrets) }

// Line exports flatten.
func Line(text string, most int) string { return flatten(text, most) }
