package output

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func render(ctx context.Context, t *testing.T, format string, document Fields) ([]byte, error) {
	t.Helper()
	f, err := ParseFormat(ctx, format)
	require.NoError(t, err)
	return (&Printer{Options: Options{Format: f}}).renderDocument(document)
}

// An expression without an end ends with the command.
func TestAnExpressionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, format := range []string{
		"jq=last(repeat(1))",
		"jq=def f: f; f",
		`template={{define "b"}}x{{end}}` + doubling("a", "b", 40) + `{{template "a" .}}`,
	} {
		why := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		go cancel(why)
		_, err := render(ctx, t, format, Fields{})
		assert.Equal(t, why, err, format)
	}
}

// doubling is a chain of templates that calls its last one 2^n times.
func doubling(first, last string, n int) string {
	var b strings.Builder
	name := func(i int) string {
		switch i {
		case 0:
			return first
		case n:
			return last
		}
		return first + strings.Repeat("x", i)
	}
	for i := range n {
		b.WriteString(`{{define "` + name(i) + `"}}{{template "` + name(i+1) + `" .}}{{template "` + name(i+1) + `" .}}{{end}}`)
	}
	return b.String()
}

// What is known is shown although the command was interrupted before.
func TestAnInterruptedCommandStillShowsItsDocument(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out, err := render(ctx, t, "jq=.items[]", Fields{{"items", []any{"a"}}})
	require.NoError(t, err)
	assert.Equal(t, "a\n", string(out))
	out, err = render(ctx, t, "template={{range .items}}{{.}}{{end}}", Fields{{"items", []any{"a"}}})
	require.NoError(t, err)
	assert.Equal(t, "a\n", string(out))
}

func TestAnExpressionIsBounded(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"repeat(1)": "jq: more than 1000000 results",
		`("x" * 20000000) as $x | range(10) | $x`: "the expression produces more than 128 MiB",
	} {
		out, err := render(t.Context(), t, "jq="+expression, Fields{})
		require.ErrorContains(t, err, want, expression)
		assert.Empty(t, out)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
		assert.NotEmpty(t, fault.HintOf(err))
	}
	code, err := parseQuery(`[range(1e12)] | length`)
	require.NoError(t, err)
	_, err = evaluateWithin(t.Context(), 64<<20, func(ctx context.Context) ([]byte, error) { return runQuery(ctx, code, Fields{}) })
	require.EqualError(t, err, "the expression needs more than 64 MiB of memory")

	_, err = render(t.Context(), t, `template={{range .items}}{{$.text}}{{end}}`, Fields{
		{"items", make([]any, 150)}, {"text", strings.Repeat("x", 1<<20)},
	})
	require.EqualError(t, err, "the expression produces more than 128 MiB")
}
