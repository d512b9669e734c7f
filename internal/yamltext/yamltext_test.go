package yamltext

import (
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
		line, column := placeOf([]byte("a b\nc\n dd"), text)
		assert.Equal(t, want, spot{line, column}, text)
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
