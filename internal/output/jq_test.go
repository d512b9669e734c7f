package output

import (
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestFromQuery(t *testing.T) {
	t.Parallel()
	huge, ok := new(big.Int).SetString("100000000000000000000000", 10)
	require.True(t, ok)
	for name, tc := range map[string]struct{ in, want any }{
		"null":   {nil, nil},
		"int":    {7, int64(7)},
		"float":  {0.5, 0.5},
		"big":    {huge, 1e23},
		"list":   {[]any{1, huge}, []any{int64(1), 1e23}},
		"object": {map[string]any{"b": huge, "a": []any{}}, Fields{{"a", []any{}}, {"b", 1e23}}},
		"text":   {"x", "x"},
	} {
		assert.Equal(t, tc.want, fromQuery(tc.in), name)
	}
}

func TestForQueryRepairsText(t *testing.T) {
	t.Parallel()
	assert.Equal(t, map[string]any{"k\ufffd": []any{"v\ufffd", nil, true}}, forQuery(Fields{{"k\xff", []any{"v\xff", nil, true}}}))
}

// FuzzQuery runs expressions over a document: whatever they do, the answer is
// output without control runes, or a usage error and no output.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{".", ".items[]", "error", "error(null)", "halt", "halt_error", "\"\\u001b\"", ".a|implode", "[.]|@csv", "input", "$__loc__", "try error(\"x\") catch .", "@sh \"\\(.)\"", ".items|tojson", "splits(\"x\")", "now|todate"} {
		f.Add(seed)
	}
	document := Fields{{"items", []any{Fields{{"name", "x\x1b\u202e"}, {"n", int64(1)}}}}, {"errors", []any{}}}
	f.Fuzz(func(t *testing.T, expression string) {
		for _, endless := range []string{"while", "until", "repeat", "recurse", "range", "limit", "def", "reduce", "foreach", "inputs", "..", "*", "combinations", "infinite", "walk", "pow", "exp"} {
			if strings.Contains(expression, endless) {
				t.Skip("may run for ever")
			}
		}
		code, err := parseQuery(expression)
		if err != nil {
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			return
		}
		out, err := runQuery(t.Context(), code, document)
		if err != nil {
			assert.Empty(t, out)
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			assert.NotContains(t, err.Error(), "\n")
			return
		}
		assert.False(t, strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(string(out)), forbidden), "%q", out)
	})
}

func TestQueryErrors(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		".a.b.c | error":        "jq: ",
		"error(\"x\\u001b\")":   `jq: error: x\x1b`,
		".items | .name":        "expected an object",
		"\"stop\" | halt_error": "jq: ",
	} {
		code, err := parseQuery(expression)
		require.NoError(t, err, expression)
		out, err := runQuery(t.Context(), code, Fields{{"items", []any{}}})
		require.ErrorContains(t, err, want, expression)
		assert.Empty(t, out)
		assert.Equal(t, 2, fault.ExitCode(err))
	}
}
