package output

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"text/template"

	"sbx/internal/fault"
)

// parseTemplate reads a text/template. Besides the built-in functions it knows
// json (compact) and join LIST SEPARATOR. An unknown key is an error, not "<no value>".
func parseTemplate(text string) (*template.Template, error) {
	functions := template.FuncMap{
		"json": func(v any) string { return string(appendJSON(nil, shapeValue(v), compact)) },
		"join": func(list []any, separator string) string {
			words := make([]string, len(list))
			for i, v := range list {
				words[i] = fmt.Sprint(v)
			}
			return strings.Join(words, separator)
		},
	}
	t, err := template.New("template").Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return nil, fault.Usage("bad template: %s", Escape(err.Error())).
			WithHint("a template reads the JSON document: template={{range .items}}{{.ref}}{{\"\\n\"}}{{end}}")
	}
	return t, nil
}

// runTemplate runs the template over the document. Text from outside is escaped
// before, so that line breaks in the result are the operator's own.
func runTemplate(ctx context.Context, t *template.Template, document Fields) ([]byte, error) {
	b := bounded{done: ctx.Done()}
	if err := t.Execute(&b, plainValue(document, Escape)); err != nil {
		if known, ok := errors.AsType[*fault.Error](err); ok {
			return nil, known
		}
		return nil, fault.Usage("template: %s", Escape(err.Error())).WithHint("see the document with -o json")
	}
	if b.Len() > 0 && b.Bytes()[b.Len()-1] != '\n' {
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}

// wholeOrFloat keeps what fits; jq panics on unsigned numbers.
func wholeOrFloat(n uint64) any {
	if n <= math.MaxInt {
		return int(n)
	}
	return float64(n)
}

// plainValue turns a shaped value into the maps and lists that templates and jq
// walk; text changes every string in it, keys included.
func plainValue(v any, text func(string) string) any {
	switch v := v.(type) {
	case string:
		return text(v)
	case int64:
		return int(v)
	case uint64:
		return wholeOrFloat(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plainValue(e, text)
		}
		return out
	case Fields:
		out := make(map[string]any, len(v))
		for _, f := range v {
			out[text(f.Key)] = plainValue(f.Value, text)
		}
		return out
	}
	return v
}
