package output

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestParseFormat(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f.tmpl")
	require.NoError(t, os.WriteFile(file, []byte("{{.schema}}"), 0o600))
	for text, want := range map[string]FormatName{
		"": Table, "table": Table, "wide": WideTable, "csv": CSV, "json": JSON, "ndjson": NDJSON, "yaml": YAML,
		"name": NameOnly, "nagios": Nagios, "template={{.x}}": Template, "template-file=" + file: TemplateFile, "jq=.a=1": JQ,
	} {
		f, err := ParseFormat(t.Context(), text)
		require.NoError(t, err, text)
		assert.Equal(t, want, f.Name())
		assert.Equal(t, want == JSON || want == NDJSON || want == YAML, f.Structured(), text)
	}
	assert.Equal(t, Table, Format{}.Name(), "the zero value is the table")
}

func TestParseFormatRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ message, hint string }{
		"jsn":                       {`unknown format "jsn"`, "did you mean json?"},
		"xml":                       {`unknown format "xml"`, "formats: table|wide|csv|json|ndjson|yaml|name|nagios|template=STR|template-file=FILE|jq=EXPR"},
		"JSON":                      {`unknown format "JSON"`, "formats:"},
		"x\x1b[0m":                  {`unknown format "x\\x1b[0m"`, "formats:"},
		"json=x":                    {"format json accepts no value", ""},
		"jq":                        {"format jq needs a value", "-o jq=EXPR"},
		"jq=":                       {"format jq needs a value", "-o jq=EXPR"},
		"jq=.items[":                {"bad jq expression", "jq="},
		"jq=nosuch":                 {"bad jq expression", "jq="},
		"template":                  {"format template needs a value", "-o template=STR"},
		"template={{.x":             {"bad template", "template="},
		"template={{nosuch}}":       {"bad template", "template="},
		"template-file=/nonexist/x": {"template file", ""},
	} {
		_, err := ParseFormat(t.Context(), text)
		require.ErrorContains(t, err, want.message, text)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), text)
		assert.Contains(t, fault.HintOf(err), want.hint, text)
		assert.NotContains(t, err.Error(), "\n")
	}
}

func FuzzParseFormat(f *testing.F) {
	for _, seed := range []string{"", "json", "jq=.items[]", "template={{.items}}", "jq=try error", "template={{range}}", "yaml=", "=x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 14 && text[:14] == "template-file=" {
			t.Skip("reads files")
		}
		format, err := ParseFormat(t.Context(), text)
		if err != nil {
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			assert.NotContains(t, err.Error(), "\n")
			return
		}
		assert.Contains(t, Formats(), format.Name())
	})
}

func TestAllowAndRefuse(t *testing.T) {
	t.Parallel()
	f, err := ParseFormat(t.Context(), "json")
	require.NoError(t, err)
	require.NoError(t, f.Allow("ls", Formats()...))
	require.NoError(t, f.Refuse("version", RowFormats()...))
	err = f.Refuse("logs -f", Documents()...)
	require.EqualError(t, err, "logs -f has no json output")
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	assert.Equal(t, "formats: table|wide|csv|ndjson|name|nagios", fault.HintOf(err))
}

func TestLevels(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Level{"table": Default, "wide": Wide, "csv": Wide, "json": Extra, "yaml": Extra, "ndjson": Extra, "jq=.": Extra} {
		f, err := ParseFormat(t.Context(), text)
		require.NoError(t, err)
		assert.Equal(t, want, f.columnLevel(), text)
	}
}
