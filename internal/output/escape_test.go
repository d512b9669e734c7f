package output

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, cell, line string }{
		"plain":             {"hello world", "hello world", "hello world"},
		"empty":             {"", "", ""},
		"umlaut and kanji":  {"grün 日本 é", "grün 日本 é", "grün 日本 é"},
		"backslash stays":   {`C:\new`, `C:\new`, `C:\new`},
		"tab":               {"a\tb", `a\tb`, "a\tb"},
		"newline":           {"a\nb\r\n", `a\nb\r\n`, `a\nb\r\n`},
		"escape sequence":   {"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`, `\x1b[31mred\x1b[0m`},
		"title sequence":    {"\x1b]0;pwned\x07", `\x1b]0;pwned\x07`, `\x1b]0;pwned\x07`},
		"null and del":      {"\x00\x7f", `\x00\x7f`, `\x00\x7f`},
		"c1":                {"\u009b31m", `\x9b31m`, `\x9b31m`},
		"c1 as a byte":      {"\x9b31m", `\x9b31m`, `\x9b31m`},
		"bidi override":     {"a\u202eb\u2066c\u2069", `a\u202eb\u2066c\u2069`, `a\u202eb\u2066c\u2069`},
		"zero width":        {"a\u200bb\ufeff", `a\u200bb\ufeff`, `a\u200bb\ufeff`},
		"separators":        {"a\u2028b\u2029", `a\u2028b\u2029`, `a\u2028b\u2029`},
		"tag characters":    {"\U000e0041", `\U000e0041`, `\U000e0041`},
		"invalid utf-8":     {"a\xff\xc3(", `a\xff\xc3(`, `a\xff\xc3(`},
		"the replacement":   {"a\ufffdb", "a\ufffdb", "a\ufffdb"},
		"replacement, tabs": {"\ufffd\t", "\ufffd" + `\t`, "\ufffd\t"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.cell, Escape(tc.in))
			assert.Equal(t, tc.line, EscapeLine(tc.in))
		})
	}
}

func TestEscapeBlockKeepsLines(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "a\tb\n\\x1b[0m\n", EscapeBlock("a\tb\n\x1b[0m\n"))
	assert.Equal(t, `\r`, EscapeBlock("\r"))
}

// FuzzEscape checks that no control rune survives,
// and text without any stays as it is.
func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"", "abc", "\x1b[2J", "\u202e", "a\tb\nc", "\xff\xfe", "\u200d", "\U000e0020", "\ufffd"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cell, line, block := Escape(text), EscapeLine(text), EscapeBlock(text)
		assert.False(t, strings.ContainsFunc(cell, forbidden), "%q", cell)
		assert.False(t, strings.ContainsFunc(strings.ReplaceAll(line, "\t", ""), forbidden), "%q", line)
		assert.False(t, strings.ContainsFunc(strings.NewReplacer("\t", "", "\n", "").Replace(block), forbidden), "%q", block)
		assert.True(t, utf8.ValidString(cell))
		assert.Equal(t, cell, Escape(cell), "escaping twice changes nothing")
		if utf8.ValidString(text) && !strings.ContainsFunc(text, forbidden) {
			assert.Equal(t, text, cell)
		}
	})
}

// forbidden is written apart from unsafeRune, so that a mistake there shows.
func forbidden(r rune) bool {
	switch {
	case unicode.IsControl(r), r == 0x2028, r == 0x2029, r == 0xfeff, r == 0x061c:
		return true
	case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x2069:
		return r != 0x2065 // not assigned
	}
	return unicode.Is(unicode.Cf, r)
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text    string
		secrets []string
		want    string
	}{
		"none":              {"token abc", nil, "token abc"},
		"empty secret":      {"token abc", []string{""}, "token abc"},
		"no secret":         {"daytona", []string{"d", "ay"}, "daytona"},
		"everywhere":        {"abc and abc", []string{"abc"}, "[redacted] and [redacted]"},
		"one holds another": {"key abc123", []string{"abc", "abc123"}, "key [redacted]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, Redact(tc.text, tc.secrets))
		})
	}
}
