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
	"unicode"
)

const (
	// hidden stands where a secret was.
	hidden = "***"
	// shortest is how many bytes a secret has that is looked for: shorter words
	// would eat every text. Of base64 it is the characters.
	shortest       = 4
	shortestBase64 = 8
	// mostText is how many characters of a foreign text stand in one of ours.
	mostText = 300
)

// inURL finds what an address carries beside the secrets that are known: the
// user and password before the host, and values whose name says what they are.
// Page tokens ("nextToken") are none.
const inURL = `://[^/?#\s"'@]+@|[?&](?i:(?:access|auth|refresh|id|session|x-amz-security)?[-_]?token|(?:api|access)?[-_]?key|(?:client)?[-_]?secret|password|passwd|sig|(?:x-amz-)?signature|x-amz-credential)=[^&#\s"']+`

// redactor hides secrets wherever they turn up: as they are, percent-encoded, as
// JSON writes them, and in base64 at any offset ("user:secret").
func redactor(secrets []string) func(string) string {
	var found []string
	for _, s := range secrets {
		if len(s) >= shortest {
			found = append(found, forms(s)...)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var pairs []string
	for _, form := range slices.Compact(found) {
		pairs = append(pairs, form, hidden)
	}
	known, unknown := strings.NewReplacer(pairs...), regexp.MustCompile(inURL)
	return func(text string) string {
		return unknown.ReplaceAllStringFunc(known.Replace(text), hideInURL)
	}
}

func hideInURL(match string) string {
	if name, _, ok := strings.Cut(match, "="); ok && match[0] != ':' {
		return name + "=" + hidden
	}
	return "://" + hidden + "@"
}

// forms are the spellings in which a secret travels.
func forms(s string) []string {
	all := []string{s, asJSON(s, true), asJSON(s, false)}
	for _, escaped := range []string{url.QueryEscape(s), url.PathEscape(s)} {
		all = append(all, escaped, lowerHex(escaped))
	}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		all = append(all, e.EncodeToString([]byte(s)), e.WithPadding(base64.NoPadding).EncodeToString([]byte(s)))
		for before := range 3 {
			if form := within(e, s, before); len(form) >= shortestBase64 {
				all = append(all, form)
			}
		}
	}
	return all
}

// within is how a secret looks in base64 when that many bytes, modulo 3, stand
// before it: the characters that depend on nothing else.
func within(e *base64.Encoding, s string, before int) string {
	whole := e.WithPadding(base64.NoPadding).EncodeToString(append(make([]byte, before), s...))
	first := (8*before + 5) / 6
	last := 8 * (before + len(s)) / 6
	return whole[min(first, last):last]
}

func asJSON(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(s) // a string is always written
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

// clean makes a text from elsewhere fit for one line of ours: no secrets, no
// line ends, control and invisible characters escaped, at most mostText long.
func (c *Client) clean(text string) string { return line(c.hide(text), mostText) }

// line flattens a text.
func line(text string, most int) string {
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
