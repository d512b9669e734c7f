package httpx

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
)

const (
	// redacted replaces a secret.
	redacted = "***"
	// minSecret is the least length of a secret that is redacted, in bytes: shorter words
	// occur in every text. For base64 it is in characters.
	minSecret       = 4
	minSecretBase64 = 8
	// maxText is the longest text of a server in an error, in characters.
	maxText = 300
)

// inURL matches secrets of addresses that are not known: user and password before the host, and
// values with the name of a secret. Page tokens ("nextToken") do not match.
const inURL = `://[^/?#\s"'@]+@|[?&](?i:(?:access|auth|refresh|id|session|x-amz-security)?[-_]?token|(?:api|access)?[-_]?key|(?:client)?[-_]?secret|password|passwd|sig|(?:x-amz-)?signature|x-amz-credential)=[^&#\s"']+`

// newRedactor redacts secrets in every form: plain, percent-encoded, in JSON, and in base64 at
// any offset ("user:secret").
func newRedactor(secrets []string) func(string) string {
	var found []string
	for _, s := range secrets {
		if len(s) >= minSecret {
			found = append(found, secretForms(s)...)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var pairs []string
	for _, form := range slices.Compact(found) {
		pairs = append(pairs, form, redacted)
	}
	known, unknown := strings.NewReplacer(pairs...), regexp.MustCompile(inURL)
	return func(text string) string {
		return unknown.ReplaceAllStringFunc(known.Replace(text), hideInURL)
	}
}

func hideInURL(match string) string {
	if name, _, ok := strings.Cut(match, "="); ok && match[0] != ':' {
		return name + "=" + redacted
	}
	return "://" + redacted + "@"
}

func secretForms(s string) []string {
	all := []string{s, asJSON(s, true), asJSON(s, false)}
	for _, escaped := range []string{url.QueryEscape(s), url.PathEscape(s)} {
		all = append(all, escaped, lowerHex(escaped))
	}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		all = append(all, e.EncodeToString([]byte(s)), e.WithPadding(base64.NoPadding).EncodeToString([]byte(s)))
		for before := range 3 {
			if form := base64Form(e, s, before); len(form) >= minSecretBase64 {
				all = append(all, form)
			}
		}
	}
	return all
}

// base64Form is the base64 of a secret behind that many bytes, modulo 3: the characters that
// depend on the secret only.
func base64Form(e *base64.Encoding, s string, before int) string {
	whole := e.WithPadding(base64.NoPadding).EncodeToString(append(make([]byte, before), s...))
	first := (8*before + 5) / 6
	last := 8 * (before + len(s)) / 6
	return whole[min(first, last):last]
}

func asJSON(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(s) // a string never fails
	return strings.Trim(strings.TrimSpace(b.String()), `"`)
}

// lowerHex writes %2F as %2f.
func lowerHex(escaped string) string {
	b := []byte(escaped)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i:], bytes.ToLower(b[i:i+3]))
		}
	}
	return string(b)
}

// maxLearned is how many secrets that were learned are kept, the newest: a token that is renewed each hour stays
// hidden for longer than its API accepts it.
const maxLearned = 16

// learned redacts the secrets of the options and those that were learned since.
type learned struct {
	mu     sync.Mutex
	known  []string
	newest []string
	hide   atomic.Pointer[func(string) string]
}

func (l *learned) start(known []string) {
	hide := newRedactor(known)
	l.known = known
	l.hide.Store(&hide)
}

// Hide redacts a secret from now on that was learned while requests were sent, such as a token that is renewed.
func (c *Client) Hide(secret string) {
	l := &c.learned
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(secret) < minSecret || slices.Contains(l.newest, secret) {
		return
	}
	l.newest = append(l.newest[max(0, len(l.newest)-maxLearned+1):], secret)
	hide := newRedactor(slices.Concat(l.known, l.newest))
	l.hide.Store(&hide)
}

func (c *Client) hide(text string) string { return (*c.learned.hide.Load())(text) }

// Clean makes a server's text usable in one line: secrets are redacted, line ends removed,
// control and invisible characters escaped, and it is cut to maxText.
func (c *Client) Clean(text string) string { return flatten(c.hide(text), maxText) }

// flatten makes one line of at most that many characters.
func flatten(text string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ") {
		if n++; n > most {
			b.WriteString("...")
			break
		}
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
