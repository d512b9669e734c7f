package output

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes untrusted text safe for one cell or one line of a terminal:
// control characters (C0, DEL, C1), line and paragraph separators, invisible
// format characters (bidi overrides, zero widths) and invalid UTF-8 are shown as
// \n, \x1b or \u202e. Everything else stays as it is.
func Escape(text string) string { return escapeText(text, false) }

// EscapeLine is Escape for a line of running text: tabs stay.
func EscapeLine(text string) string { return escapeText(text, true) }

// EscapeBlock is Escape for text of several lines: tabs and newlines stay. It is for
// text whose line breaks were chosen by the operator, as in a jq expression.
func EscapeBlock(text string) string {
	if !strings.Contains(text, "\n") {
		return EscapeLine(text)
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = EscapeLine(line)
	}
	return strings.Join(lines, "\n")
}

func escapeText(text string, keepTabs bool) string {
	start := firstUnsafe(text, keepTabs)
	if start < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + 16)
	b.WriteString(text[:start])
	for i := start; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unsafeRune(r) && (r != '\t' || !keepTabs):
			b.WriteString(escapeRune(r))
		default:
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String()
}

// firstUnsafe is the offset of the first byte that has to change, or -1.
func firstUnsafe(text string, keepTabs bool) int {
	for i, r := range text {
		switch {
		case r >= ' ' && r < 0x7f, r == '\t' && keepTabs:
			continue
		case unsafeRune(r):
			return i
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			return i
		}
	}
	return -1
}

// unsafeRune says that a rune may move the cursor, hide or reorder text.
func unsafeRune(r rune) bool {
	if r < 0x7f {
		return r < ' '
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

func escapeRune(r rune) string {
	switch {
	case r == '\t':
		return `\t`
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// redacted replaces a secret.
const redacted = "[redacted]"

// shortestSecret is how many bytes a secret has that is hidden: a shorter one is no
// secret, and would eat every text.
const shortestSecret = 3

// Redact replaces every secret in text, the longest first so that a secret which
// contains another leaves no rest. Empty secrets are ignored.
func Redact(text string, secrets []string) string {
	if len(secrets) == 0 {
		return text
	}
	ordered := slices.Clone(secrets)
	slices.SortFunc(ordered, func(a, b string) int { return len(b) - len(a) })
	for _, s := range ordered {
		if len(s) >= shortestSecret {
			text = strings.ReplaceAll(text, s, redacted)
		}
	}
	return text
}
