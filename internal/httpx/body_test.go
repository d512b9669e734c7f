package httpx_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/testkit/bubble"
)

// TestBadBodies: an invalid answer is unavailable, with the answer quoted in one line.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	flushed := func(body string) http.HandlerFunc { // without a length
		return func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write([]byte(body))
		}
	}
	html := "<!doctype html>\n<title>Sign in</title>" + long
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		says   string
		hint   string
		asked  int
	}{
		"over the cap":        {text(200, `"`+long+`"`), "the answer is too large: 2002 bytes, the limit is 1000", "", 1},
		"over it, no length":  {flushed(`"` + long + `"`), "the answer is too large: the limit is 1000 bytes", "", 1},
		"truncated":           {begin(`{"a":1}`, reset), "the answer was cut short", "try again", 3},
		"garbage":             {text(200, `{"items": [{"id": 7, "sta`), `the answer is invalid: it ends too early: "{\"items\": [{\"id\": 7, \"sta"`, "try later", 1},
		"other types":         {text(200, `{"a":"one"}`), "A must not be of type string", "try later", 1},
		"something behind":    {text(200, `{"a":1}{"a":2}`), "invalid JSON at byte 8", "try later", 1},
		"empty":               {text(200, ""), "the answer is empty", "try later", 1},
		"html by its type":    {text(200, "Sign in", "Content-Type", "text/html; charset=utf-8"), `the answer is HTML instead of JSON: "Sign in"`, "check the url: requests go to http://api.example", 1},
		"html by its start":   {flushed(" \n" + html[:100]), `the answer is HTML instead of JSON: "<!doctype html> <title>Sign in</title>xx`, "check the url", 1},
		"control characters":  {text(200, "\x1b[31m\u202eabc\r\nd\x00"), `"\\x1b[31m\\u202eabc d\\x00"`, "try later", 1},
		"not UTF-8":           {text(200, "\xff\xfe"), `"?"`, "try later", 1},
		"a secret":            {text(200, "{ key "+secret), `"{ key ***"`, "try later", 1},
		"a secret at the cut": {text(200, strings.Repeat("-", 58)+secret), strings.Repeat("-", 58) + "**...", "try later", 1},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			c, m := client(t, tc.answer, httpx.Options{MaxBody: 1000})
			var got struct{ A int }
			_, err := c.JSON(t.Context(), httpx.Request{Op: "get a"}, &got)
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
			require.ErrorContains(t, err, "prod: get a: ")
			require.ErrorContains(t, err, tc.says)
			assert.NotContains(t, err.Error(), "\n")
			assert.NotContains(t, err.Error(), secret[:4])
			assert.Contains(t, fault.HintOf(err), tc.hint)
			assert.Len(t, m.requests(), tc.asked)
		})
	}
}

func TestTheCapOfOneRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := client(t, text(200, strings.Repeat("x", 5000)), httpx.Options{MaxBody: 1000})
		res, err := c.Do(t.Context(), httpx.Request{Op: "a", MaxBody: 5000})
		require.NoError(t, err)
		assert.Len(t, res.Body, 5000)
		_, err = c.Do(t.Context(), httpx.Request{Op: "a", MaxBody: 4999})
		require.ErrorContains(t, err, "the limit is 4999 bytes")
	})
}

// TestRefusals: a status becomes a kind, with the provider's message.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		kind   fault.Kind
		says   string
		code   string
	}{
		"message":           {text(404, `{"message":"no box a"}`), fault.KindNotFound, "HTTP 404: no box a", ""},
		"code and message":  {text(410, `{"code":"sandbox_stopped","message":"it is over"}`), fault.KindUnavailable, "HTTP 410: it is over (sandbox_stopped)", "sandbox_stopped"},
		"a numeric code":    {text(404, `{"code":404,"message":"no box a"}`), fault.KindNotFound, "HTTP 404: no box a", ""},
		"inside error":      {text(401, `{"error":{"code":"forbidden","message":"bad key"}}`), fault.KindAuth, "HTTP 401: bad key (forbidden)", "forbidden"},
		"error as text":     {text(500, `{"error":"boom"}`), fault.KindUnavailable, "HTTP 500: boom", ""},
		"error and message": {text(400, `{"error":"Bad Request","message":"limit is too high"}`), fault.KindUnknown, "HTTP 400: limit is too high", ""},
		"detail":            {text(409, `{"detail":"busy"}`), fault.KindUnknown, "HTTP 409: busy", ""},
		"error_code":        {text(422, `{"error_code":"no_image","detail":"no image"}`), fault.KindUnknown, "HTTP 422: no image (no_image)", "no_image"},
		"a list as detail":  {text(422, `{"detail":[{"loc":["body"]}]}`), fault.KindUnknown, "HTTP 422: Unprocessable Entity", ""},
		"nothing":           {text(403, ""), fault.KindAuth, "HTTP 403: Forbidden", ""},
		"html":              {text(502, "<html>Bad gateway"), fault.KindUnavailable, "HTTP 502: the answer is a web page instead of JSON", ""},
		"garbage":           {text(405, "{{{"), fault.KindUnsupported, "HTTP 405: Method Not Allowed", ""},
		"lines and control": {text(404, `{"message":"no\nbox\u001b[31m a"}`), fault.KindNotFound, `HTTP 404: no box\x1b[31m a`, ""},
		"a secret":          {text(400, `{"message":"key `+secret+` is old","code":"`+secret+`"}`), fault.KindUnknown, "HTTP 400: key *** is old (***)", "***"},
		"an escaped secret": {text(400, `{"message":"key sk-9f2c71\/a+b\u0026c is old"}`), fault.KindUnknown, "HTTP 400: key *** is old", ""},
		"a long text":       {text(400, `{"message":"`+strings.Repeat("y", 1000)+`"}`), fault.KindUnknown, strings.Repeat("y", 300) + "...", ""},
		"no way onwards":    {text(304, ""), fault.KindUnknown, "HTTP 304: Not Modified", ""},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			c, _ := client(t, tc.answer, httpx.Options{Tries: 1})
			_, err := c.Do(t.Context(), httpx.Request{Op: "get a"})
			assert.Equal(t, tc.kind, fault.KindOf(err))
			require.ErrorContains(t, err, "prod: get a: HTTP ")
			require.ErrorContains(t, err, tc.says)
			s := httpx.StatusOf(err)
			require.NotNil(t, s)
			assert.Equal(t, tc.code, s.Code)
			assert.NotContains(t, string(s.Body), secret)
			if tc.kind == fault.KindAuth {
				assert.Contains(t, fault.HintOf(err), "sbx doctor --provider prod")
			}
		})
	}
}

// TestTheBodyOfARefusalIsCutAfterHiding: the body is cut after the redaction, so that no part of a
// secret is left.
func TestTheBodyOfARefusalIsCutAfterHiding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := client(t, text(400, strings.Repeat("-", 4<<10-6)+secret+strings.Repeat("z", 100_000)), httpx.Options{})
		_, err := c.Do(t.Context(), httpx.Request{Op: "a"})
		s := httpx.StatusOf(err)
		require.NotNil(t, s)
		assert.Len(t, s.Body, 4<<10)
		assert.True(t, strings.HasSuffix(string(s.Body), "---***zzz"), "%s", s.Body[4080:])
	})
}

func TestARoomExplainsItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := client(t, text(400, "own words"), httpx.Options{Explain: func(status int, body []byte) (string, string) {
			assert.Equal(t, 400, status)
			return "own_code", string(body)
		}})
		_, err := c.Do(t.Context(), httpx.Request{Op: "a"})
		assert.EqualError(t, err, "prod: a: HTTP 400: own words (own_code)")
	})
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]fault.Kind{
		400: fault.KindUnknown, 401: fault.KindAuth, 403: fault.KindAuth, 404: fault.KindNotFound, 405: fault.KindUnsupported,
		408: fault.KindUnavailable, 409: fault.KindUnknown, 410: fault.KindGone, 425: fault.KindUnavailable, 429: fault.KindUnavailable,
		500: fault.KindUnavailable, 501: fault.KindUnsupported, 502: fault.KindUnavailable, 599: fault.KindUnavailable,
	} {
		assert.Equal(t, want, httpx.KindOf(status), "%d", status)
	}
	assert.Zero(t, httpx.Status(fault.New(fault.KindUnknown, "no answer")))
	assert.Nil(t, httpx.StatusOf(nil))
}

func FuzzExplain(f *testing.F) {
	for _, seed := range []string{`{"message":"a"}`, `{"error":{"code":1,"message":2}}`, `{"error":"x","detail":["y"]}`, `[]`, `null`, `{"error":null}`, "<"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		code, message := httpx.Explain(500, body)
		again, same := httpx.Explain(500, body)
		if code != again || message != same {
			t.Fatal("it depends on more than the body")
		}
	})
}
