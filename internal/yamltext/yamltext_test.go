package yamltext

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

type spot struct{ line, column int }

func TestTabs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		content string
		want    []spot
	}{
		"none":             {"a:\n  b: c\n", nil},
		"indentation":      {"a:\n\tb: c\n", []spot{{2, 1}}},
		"after spaces":     {"a:\n  \tb: c\n", []spot{{2, 3}}},
		"first line":       {"\ta: b", []spot{{1, 1}}},
		"each line once":   {"\t\ta: b\n\tc: d\n", []spot{{1, 1}, {2, 1}}},
		"empty line":       {"a: b\n\t\n \t \nc: d\n", nil},
		"comment":          {"\t# a comment\n", nil},
		"after the value":  {"a: b\t# a comment\n", nil},
		"inside the value": {"a: \"b\tc\"\n", nil},
		"windows line end": {"a:\r\n\tb: c\r\n", []spot{{2, 1}}},
		"in a flow":        {"a: {\n\tb: c}\n", []spot{{2, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []spot
			for _, m := range findTabs([]byte(tc.content)) {
				got = append(got, spot{m.Line, m.Column})
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestPlaceOfText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]spot{"a": {1, 1}, "b": {1, 3}, "c": {2, 1}, "dd": {3, 2}, "absent": {1, 1}} {
		line, column := placeOfText([]byte("a b\nc\n dd"), text)
		assert.Equal(t, want, spot{line, column}, text)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		content string
		want    string // of the mistakes; "" = none
		some    bool
	}{
		"settings":         {"a: b", "", true},
		"windows":          {"a: b\r\nc: d\r\n", "", true},
		"marker before":    {"---\na: b\n", "", true},
		"marker after":     {"a: b\n...\n", "", true},
		"nothing":          {"", "", false},
		"null":             {"null", "", false},
		"anchor on a key":  {"&x a: b", "1:1 anchors are not accepted; quote a text that begins with &", true},
		"merge":            {"a: &x {b: c}\nd: {<<: *x}", "2:9 aliases are not accepted", true},
		"quoted alias":     {"a: '*x'", "", true},
		"quoted tag":       {"a: '!x'", "", true},
		"binary tag":       {"a: !!binary aGk=", "1:4 tags are not accepted; quote a text that begins with !", true},
		"open quote":       {"a: \"b\nc: d", "not valid YAML", false},
		"unknown escape":   {`a: "\q"`, "not valid YAML: found unknown escape character", false},
		"zero byte":        {"a: \x00", "not valid YAML: control characters are not allowed", false},
		"not UTF-8":        {"a: \xff", "not valid YAML", false},
		"closing only":     {"]", "not valid YAML", false},
		"alias of nothing": {"a:\n  - b\n  - *s3cret", "3:5 not valid YAML: an alias names no anchor", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, some := Read([]byte(tc.content))
			assert.Equal(t, tc.some, some)
			var found strings.Builder
			for _, m := range r.Mistakes {
				fmt.Fprintf(&found, "%d:%d %s\n", m.Line, m.Column, m.Message)
			}
			assert.Equal(t, tc.want == "", len(r.Mistakes) == 0)
			assert.Contains(t, found.String(), tc.want)
			assert.NotContains(t, found.String(), "s3c")
		})
	}
}

func TestPrintableKeyStopsWhereASecretMayBegin(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"token": "token", "token:s3cret": "token", "token s3cret": "token", "token=s3cret": "token", "": "", "\x1b[31m": "",
		strings.Repeat("a", 50): strings.Repeat("a", 40),
	} {
		assert.Equal(t, want, PrintableKey(key))
	}
}

// FuzzParse: no text makes it fail, and a mistake has a place.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a: b", "a: &x 1\nb: *x", "\ta: b", "a: !!str x", "a: b\n---\nc: d", "? a\n: b", "{a: b?, c}", "a: [", "*x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		_, found := Parse(content)
		for _, m := range found {
			assert.True(t, m.Line > 0 && m.Column > 0 && m.Message != "", "%+v", m)
		}
	})
}
