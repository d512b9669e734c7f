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
		`{{range $k, $v := (index .items 0).labels}}{{$k}}={{$v}}{{end}}`: `k\n=v\t` + "\n",
		`{{if (index .items 0).none}}set{{else}}unknown{{end}}`:           "unknown\n",
		`{{len .items}} of {{printf "%03d" (index .items 0).n}}`:          "1 of 003\n",
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
	for _, text := range []string{`{{.nosuch}}`, `{{index .items 9}}`, `before {{(index .items 0).n.x}}`, `{{join .items}}`, `{{json}}`} {
		parsed, err := parseTemplate(text)
		require.NoError(t, err, text)
		got, err := runTemplate(t.Context(), parsed, nastyDocument())
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), text)
		assert.Empty(t, got, "%s: nothing half done", text)
		assert.NotContains(t, err.Error(), "\n")
		assert.Equal(t, "see the document with -o json", fault.HintOf(err))
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
