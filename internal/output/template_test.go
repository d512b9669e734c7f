package output

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func nastyDocument() Fields {
	return Fields{
		{"items", []any{Fields{{"name", "two\nlines\x1b[31m"}, {"n", int64(3)}, {"none", nil}, {"labels", Fields{{"k\n", "v\t"}}}}}},
		{"words", []any{"a", "b\x07"}},
		{"none", nil},
		{"age", 1500000.0},
		{"share", 0.25},
		{"figures", []any{int64(1), 2000000.5}},
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                 "",
		`plain`:                            "plain\n",
		"with its own end\n":               "with its own end\n",
		`{{range .items}}{{.name}}{{end}}`: `two\nlines\x1b[31m` + "\n",
		`{{(index .items 0).n}}`:           "3\n",
		`{{join .words "\n"}}`:             "a\nb\\x07\n",
		`{{json .words}}`:                  `["a","b\\x07"]` + "\n",
		`{{range $k, $v := (index .items 0).labels}}{{$k}}={{$v}}{{end}}`:            `k\n=v\t` + "\n",
		`{{if (index .items 0).none}}set{{else}}unknown{{end}}`:                      "unknown\n",
		`{{len .items}} of {{printf "%03d" (index .items 0).n}}`:                     "1 of 003\n",
		`{{define "row"}}[{{.n}}]{{end}}{{range .items}}{{template "row" .}}{{end}}`: "[3]\n",
		`{{define "only"}}x{{end}}`:                                                  "",
		`{{with (index .items 0).none}}x{{else}}none{{end}}{{range .none}}x{{end}}`:  "none\n",
		// numbers are printed as in the document of json, and those of both kinds compare
		`{{.age}} {{print .age}} {{printf "%.2f" .share}} {{.share}} {{json .age}} {{join .figures "|"}}`: "1500000 1500000 0.25 0.25 1500000 1|2000000.5\n",
		`{{gt .age 600}} {{lt 0 .share}} {{le .share 1}} {{ge 2 2.0}} {{lt "a" "b"}}`:                     "true true true true true\n",
		`{{eq 1 1.0}} {{eq .age 1 1500000}} {{ne .share 1}} {{eq .none nil}} {{ne .words nil}}`:           "true true true true true\n",
	} {
		parsed, err := parseTemplate(text)
		require.NoError(t, err, text)
		got, err := runTemplate(t.Context(), parsed, nastyDocument())
		require.NoError(t, err, text)
		assert.Equal(t, want, string(got), text)
	}
}

func TestTemplatesThatFail(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{{.nosuch}}`: `line 1: .nosuch: there is no key "nosuch"`,
		"\n{{define \"a\"}}{{.x}}{{end}}{{template \"a\" .}}": `line 2: .x: there is no key "x"`,
		`{{.none.x}}`:                     "line 1: .none.x: null has no key x",
		`{{index .items 9}}`:              "line 1: index .items 9: error calling index: index out of range: 9",
		`before {{(index .items 0).n.x}}`: "line 1: ",
		`{{join .items}}`:                 "line 1: join: wrong number of args",
		`{{join .none ","}}`:              "it takes a list",
		`{{json}}`:                        "line 1: json: wrong number of args",
		`{{template "nosuch"}}`:           `line 1: {{template "nosuch"}}: template "nosuch" not defined`,
		`{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`: "exceeded maximum template depth",
		`{{eq .age "x"}}`:      "only two numbers, two texts and two booleans are compared",
		`{{eq .words .words}}`: "only two numbers, two texts and two booleans are compared",
		`{{eq 1}}`:             "it needs 2 arguments",
		`{{gt .none 1}}`:       "only two numbers and two texts have an order",
		`{{lt "a" 1}}`:         "only two numbers and two texts have an order",
	} {
		parsed, err := parseTemplate(text)
		require.NoError(t, err, text)
		got, err := runTemplate(t.Context(), parsed, nastyDocument())
		require.ErrorContains(t, err, want, text)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), text)
		assert.Empty(t, got, "%s: nothing half done", text)
		assert.NotContains(t, err.Error(), "\n")
		assert.Equal(t, "see the document with -o json", fault.HintOf(err))
	}
}

func TestTemplatesThatDoNotParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{{.foo":            "bad template: line 1: unclosed action",
		"{{.foo\n":          "bad template: line 2: unclosed action that began in line 1",
		"a\n{{nosuch 1}}":   `bad template: line 2: function "nosuch" not defined`,
		"{{if .yes}}\n":     "bad template: line 2: unexpected EOF",
		"{{$x}}":            `bad template: line 1: undefined variable "$x"`,
		"{{/* a comment */": "bad template: line 1: comment ends before closing delimiter",
	} {
		_, err := parseTemplate(text)
		require.EqualError(t, err, want, text)
		assert.Contains(t, fault.HintOf(err), "a template reads the JSON document")
	}
}

// FuzzTemplate runs templates over a document with control runes in its text:
// only those that the template itself writes come out.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"{{.}}", "{{json .}}", "{{range .items}}{{.name}}{{end}}", "{{join .words \",\"}}", "{{printf \"%q\" .}}", "{{index .words 1}}", "{{html .words}}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsFunc(text, forbidden) || strings.Contains(text, `\`) || strings.Contains(text, "%") || len(text) > 200 {
			t.Skip("writes control runes, or very much, by itself")
		}
		parsed, err := parseTemplate(text)
		if err != nil {
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			return
		}
		out, err := runTemplate(t.Context(), parsed, nastyDocument())
		if err != nil {
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			return
		}
		assert.LessOrEqual(t, strings.Count(string(out), "\n"), 1, "%q", out)
		assert.False(t, strings.ContainsFunc(strings.TrimSuffix(string(out), "\n"), forbidden), "%q", out)
	})
}
