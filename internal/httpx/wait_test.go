package httpx_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/httpx"
)

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func TestEverySpellingOfRetryAfter(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		header map[string]string
		want   time.Duration
	}{
		"seconds":             {429, map[string]string{"Retry-After": "7"}, 7 * time.Second},
		"with spaces":         {429, map[string]string{"Retry-After": " 7 "}, 7 * time.Second},
		"fractions":           {429, map[string]string{"Retry-After": "1.25"}, 1250 * time.Millisecond},
		"a date":              {503, map[string]string{"Retry-After": "Sat, 21 Nov 2026 12:00:30 GMT"}, 30 * time.Second},
		"a date that passed":  {503, map[string]string{"Retry-After": "Sat, 21 Nov 2026 11:00:30 GMT"}, 0},
		"authenticated":       {429, map[string]string{"Retry-After-authenticated": "11"}, 11 * time.Second},
		"sandbox-create":      {429, map[string]string{"Retry-After-sandbox-create": "12"}, 12 * time.Second},
		"sandbox-lifecycle":   {429, map[string]string{"Retry-After-sandbox-lifecycle": "13"}, 13 * time.Second},
		"sandbox-list":        {429, map[string]string{"Retry-After-sandbox-list": "14"}, 14 * time.Second},
		"failed-auth":         {429, map[string]string{"Retry-After-failed-auth": "15"}, 15 * time.Second},
		"the longest of them": {429, map[string]string{"Retry-After-a": "5", "Retry-After-b": "50", "Retry-After": "6"}, 50 * time.Second},
		"RateLimit-Reset":     {429, map[string]string{"RateLimit-Reset": "9"}, 9 * time.Second},
		"X-RateLimit-Reset":   {429, map[string]string{"X-RateLimit-Reset": "9"}, 9 * time.Second},
		"suffixed reset":      {429, map[string]string{"X-RateLimit-Reset-sandbox-list": "8"}, 8 * time.Second},
		"Unix seconds":        {429, map[string]string{"X-RateLimit-Reset": "1795262420"}, 20 * time.Second},
		"Unix milliseconds":   {429, map[string]string{"X-RateLimit-Reset": "1795262420000"}, 20 * time.Second},
		"Retry-After first":   {429, map[string]string{"Retry-After": "2", "RateLimit-Reset": "30"}, 2 * time.Second},
		"garbage, then reset": {429, map[string]string{"Retry-After": "soon", "RateLimit-Reset": "30"}, 30 * time.Second},
		"a limit on a 503":    {503, map[string]string{"RateLimit-Reset": "30"}, 0},
		"another header":      {429, map[string]string{"Retry-Afterwards": "30"}, 0},
		"on another status":   {500, map[string]string{"Retry-After": "30"}, 0},
		"zero":                {429, map[string]string{"Retry-After": "0"}, 0},
		"negative":            {429, map[string]string{"Retry-After": "-3"}, 0},
		"not a number":        {429, map[string]string{"Retry-After": "NaN"}, 0},
		"for ever":            {429, map[string]string{"Retry-After": "Inf"}, 0},
		"empty":               {429, map[string]string{"Retry-After": ""}, 0},
		"none":                {429, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			for k, v := range tc.header {
				h.Set(k, v)
			}
			assert.Equal(t, tc.want, httpx.RetryAfter(noon(), &http.Response{StatusCode: tc.status, Header: h}).Round(time.Millisecond))
		})
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"7", "1.5", "-1", "1e300", "NaN", "0x1p9", "99999999999", "1795262420", "Sat, 21 Nov 2026 12:00:30 GMT", "Sat, 21 Nov 9999 12:00:30 GMT", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := httpx.RetryAfter(noon(), &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {text}}})
		if got < 0 || got > 366*24*time.Hour {
			t.Fatalf("%q is read as %s", text, got)
		}
	})
}
