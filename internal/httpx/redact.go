package httpx

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// hidden stands where a secret was.
const hidden = "***"

// redactor hides secrets wherever they turn up: as they are, percent-encoded and
// in base64. Words of fewer than four characters are not hidden: they would eat
// every text.
func redactor(secrets []string) func(string) string {
	var pairs []string
	for _, s := range secrets {
		if len(s) < 4 {
			continue
		}
		for _, form := range []string{
			s, url.QueryEscape(s), url.PathEscape(s),
			base64.StdEncoding.EncodeToString([]byte(s)), base64.RawStdEncoding.EncodeToString([]byte(s)),
			base64.URLEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)),
		} {
			pairs = append(pairs, form, hidden)
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

// clean makes a text from elsewhere fit for one line of ours: no secrets, no
// line ends, no control characters, no more than 300 characters.
func (c *Client) clean(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(strings.ToValidUTF8(c.hide(text), "?")), " ")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return text
}

func (c *Client) trace(line string) {
	if c.net.Trace != nil {
		c.net.Trace(c.clean(line))
	}
}

// traced writes the request and gives the function that writes its answer.
func (c *Client) traced(req *http.Request) func(status int, err error) {
	if c.net.Trace == nil {
		return func(int, error) {}
	}
	began := time.Now()
	call := req.Method + " " + req.URL.Redacted()
	c.trace("> " + call)
	return func(status int, err error) {
		took := time.Since(began).Round(time.Millisecond).String()
		if err != nil {
			c.trace("< " + call + ": " + err.Error() + " after " + took)
			return
		}
		c.trace("< " + strconv.Itoa(status) + " " + call + " after " + took)
	}
}
