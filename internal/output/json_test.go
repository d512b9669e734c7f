package output

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestAppendJSON(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"null":            {nil, "null"},
		"bool":            {true, "true"},
		"int":             {int64(-5), "-5"},
		"large":           {uint64(math.MaxUint64), "18446744073709551615"},
		"float":           {0.1, "0.1"},
		"no exponent":     {123456789012.5, "123456789012.5"},
		"whole float":     {64.0, "64"},
		"huge":            {1e300, "1e+300"},
		"tiny":            {1e-9, "1e-09"},
		"no html escapes": {"<a&b>", `"<a&b>"`},
		"controls":        {"\x00\n\r\t\x7f\u009b", `"\u0000\n\r\t\u007f\u009b"`},
		"bidi":            {"\u202e", `"\u202e"`},
		"beyond the bmp":  {"\U000e0041", `"\udb40\udc41"`},
		"emoji":           {"😀", `"😀"`},
		"quotes":          {`a"\`, `"a\"\\"`},
		"broken utf-8":    {"a\xffb", `"a\ufffdb"`},
		"empty list":      {[]any{}, "[]"},
		"empty object":    {Fields{}, "{}"},
		"key order":       {Fields{{"b", int64(1)}, {"a", []any{nil, "x"}}}, `{"b":1,"a":[null,"x"]}`},
		"not shaped yet":  {[]string{"x"}, `["x"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, string(appendJSON(nil, tc.value, compact)))
		})
	}
}

func TestIndentationIsThatOfEncodingJSON(t *testing.T) {
	t.Parallel()
	value := Fields{{"a", []any{int64(1), Fields{{"b", "c"}}, []any{}}}, {"d", Fields{}}}
	got := string(appendJSON(nil, value, 0))
	var want strings.Builder
	encoder := json.NewEncoder(&want)
	encoder.SetIndent("", "  ")
	require.NoError(t, encoder.Encode(json.RawMessage(got)))
	assert.Equal(t, want.String(), got+"\n")
}

// FuzzStrings reads every string back from JSON and YAML, and looks for control runes
// in both documents.
func FuzzStrings(f *testing.F) {
	for _, seed := range []string{"", "true", "1", "null", "a: b", "# x", " lead", "trail ", "a\nb", "\x1b[0m", "\u202ex", "\u0085", "\xff", "<&>", "2026-01-01", "=x", "~", "\ufeff", "\U000e0041", "'\u200b'", "a\u2028b", "|", "- x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		document := Fields{{"k", s}, {"list", []any{s}}}
		var want, got struct {
			K    string   `json:"k"    yaml:"k"`
			List []string `json:"list" yaml:"list"`
		}
		standard, err := json.Marshal(map[string]any{"k": s, "list": []string{s}})
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(standard, &want))

		text := appendJSON(nil, document, 0)
		require.NoError(t, json.Unmarshal(text, &got))
		assert.Equal(t, want, got)
		assert.False(t, strings.ContainsFunc(strings.ReplaceAll(string(text), "\n", ""), forbidden), "%q", text)

		text, err = appendYAML(nil, document)
		require.NoError(t, err)
		clean := strings.ToValidUTF8(s, "\ufffd")
		got.K, got.List = "", nil
		require.NoError(t, yaml.Unmarshal(text, &got), "%q", text)
		assert.Equal(t, clean, got.K, "%q", text)
		assert.Equal(t, []string{clean}, got.List, "%q", text)
		assert.False(t, strings.ContainsFunc(strings.ReplaceAll(string(text), "\n", ""), forbidden), "%q", text)
	})
}

func TestYAMLKeepsTypesApart(t *testing.T) {
	t.Parallel()
	document := Fields{
		{"number", int64(1)},
		{"text", "1"},
		{"yes", true},
		{"word", "true"},
		{"none", nil},
		{"null", "null"},
		{"float", 1.5},
		{"list", []any{}},
		{"map", Fields{}},
		{"lines", "a\nb"},
		{"at", "2026-03-01T12:00:00Z"},
	}
	text, err := appendYAML(nil, document)
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, yaml.Unmarshal(text, &got))
	assert.Equal(t, map[string]any{
		"number": 1, "text": "1", "yes": true, "word": "true", "none": nil, "null": "null",
		"float": 1.5, "list": []any{}, "map": map[string]any{}, "lines": "a\nb", "at": "2026-03-01T12:00:00Z",
	}, got)
}
