package httpx_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
)

func TestSecretsAreHiddenInEveryForm(t *testing.T) {
	t.Parallel()
	hide := httpx.Redactor([]string{secret, "abc", "sk-9f2c71", `quo"te<d>`})
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, tc := range map[string]struct{ text, want string }{
		"as it is":              {"key " + secret + " is old", "key *** is old"},
		"twice":                 {secret + secret, "******"},
		"a longer one first":    {"sk-9f2c71/a+b&c sk-9f2c71", "*** ***"},
		"in a query":            {"q=" + url.QueryEscape(secret), "q=***"},
		"in a path":             {"/x/" + url.PathEscape(secret), "/x/***"},
		"percent, lower case":   {strings.ToLower(url.QueryEscape(secret)), "***"},
		"as JSON":               {`{"k":"quo\"te\u003cd\u003e"}`, `{"k":"***"}`},
		"as plain JSON":         {`{"k":"quo\"te<d>"}`, `{"k":"***"}`},
		"base64":                {b64(secret), "***"},
		"base64, no padding":    {strings.TrimRight(b64(secret), "="), "***"},
		"url base64":            {base64.URLEncoding.EncodeToString([]byte(secret)), "***"},
		"a short word stays":    {"abc", "abc"},
		"user of an address":    {"http://me:pw@host/x", "http://***@host/x"},
		"token of an address":   {"get http://h/x?token=t0k&a=1", "get http://h/x?token=***&a=1"},
		"key of an address":     {"/x?a=1&api_key=k&b=2", "/x?a=1&api_key=***&b=2"},
		"signature":             {"/f?X-Amz-Signature=abc&expires=1", "/f?X-Amz-Signature=***&expires=1"},
		"access token":          {"/f?access_token=abc#x", "/f?access_token=***#x"},
		"a page token is shown": {"/x?nextToken=abc&limit=5", "/x?nextToken=abc&limit=5"},
		"an ordinary address":   {"http://host:8080/a@b?x=1", "http://host:8080/a@b?x=1"},
		"nothing to hide":       {"HTTP 503: no room", "HTTP 503: no room"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, hide(tc.text))
		})
	}
	for _, user := range []string{"", "a", "ab", "abc", "admin"} { // at every offset of base64
		got := hide("Basic " + b64(user+":"+secret+"tail"))
		assert.Contains(t, got, "***", user)
		assert.NotContains(t, got, b64(user + ":" + secret)[8:20], user)
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain":                 "plain",
		" two\r\n\tlines \n":    "two lines",
		"\x1b]0;title\x07":      `\x1b]0;title\x07`,
		"\u202eright to left":   `\u202eright to left`,
		"zero\u200bwidth":       `zero\u200bwidth`,
		"bad \xff\xfe bytes":    "bad ? bytes",
		"größe 日本":              "größe 日本",
		strings.Repeat("é", 41): strings.Repeat("é", 40) + "...",
		"":                      "",
		"c1 \u009b31m":          `c1 \x9b31m`,
	} {
		assert.Equal(t, want, httpx.Line(text, 40), "%q", text)
	}
}

func FuzzRedaction(f *testing.F) {
	f.Add(secret, "before ", " after")
	f.Add("%41%42", "?token=", "&a=1")
	f.Add("aaaa", "aaa", "aaaa")
	f.Add(`"<>&\`, "{", "}")
	f.Fuzz(func(t *testing.T, key, before, after string) {
		if len(key) < 4 || strings.Trim(key, "*") == "" || strings.Contains("***", key) {
			t.Skip("too short to be looked for")
		}
		hide := httpx.Redactor([]string{key})
		quoted, err := json.Marshal(key)
		require.NoError(t, err)
		for _, form := range []string{
			key, url.QueryEscape(key), url.PathEscape(key), strings.Trim(string(quoted), `"`),
			base64.StdEncoding.EncodeToString([]byte(key)), base64.RawURLEncoding.EncodeToString([]byte(key)),
		} {
			if len(form) < len(key) || strings.Contains(before+after, "*") {
				continue
			}
			got := hide(before + "\n" + form + "\n" + after)
			if strings.Contains(got, "\n"+form+"\n") {
				t.Fatalf("%q shows %q in %q", key, form, got)
			}
		}
		for _, r := range httpx.Line(hide(before+key+after), 300) {
			if unicode.IsControl(r) {
				t.Fatalf("%q is left", r)
			}
		}
	})
}

// A secret that is learned later is hidden from then on, the newest ones and never fewer than those of the options.
func TestSecretsThatAreLearned(t *testing.T) {
	t.Parallel()
	c, err := httpx.New(httpx.Net{}, httpx.Options{Base: "https://api.example.com", Secrets: []string{"from-the-start"}})
	require.NoError(t, err)
	assert.Equal(t, "*** token-00", c.Clean("from-the-start token-00"))
	var all []string
	for i := range 17 {
		all = append(all, fmt.Sprintf("token-%02d", i))
		c.Hide(all[i])
		c.Hide(all[i])
		c.Hide("ab")
	}
	assert.Equal(t, "*** "+all[0]+strings.Repeat(" ***", 16)+" ab", c.Clean("from-the-start "+strings.Join(all, " ")+" ab"))
}
