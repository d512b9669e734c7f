package output

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"text/template"

	"sbx/internal/fault"
)

// templateName is what text/template calls the template in its errors.
const templateName = "template"

// parseTemplate reads a Go template. Besides the functions of the language it knows
// json (compact) and join LIST SEPARATOR, and it compares numbers of both kinds. An
// unknown key is an error, not "<no value>".
func parseTemplate(text string) (*template.Template, error) {
	t, err := template.New(templateName).Option("missingkey=error").Funcs(templateFunctions()).Parse(text)
	if err != nil {
		return nil, fault.Usage("bad template: %s", Escape(templateMessage(err))).
			WithHint("a template reads the JSON document: template={{range .items}}{{.ref}}{{\"\\n\"}}{{end}}")
	}
	return t, nil
}

// runTemplate runs the template over the document. Text from outside is escaped
// before, so that line breaks in the result are the operator's own.
func runTemplate(ctx context.Context, t *template.Template, document Fields) ([]byte, error) {
	b := bounded{done: ctx.Done()}
	if err := t.Execute(&b, plainValue(document, Escape, func(f float64) any { return decimal(f) })); err != nil {
		if known, ok := errors.AsType[*fault.Error](err); ok {
			return nil, known
		}
		return nil, fault.Usage("template: %s", Escape(templateMessage(err))).WithHint("see the document with -o json")
	}
	if b.Len() > 0 && b.Bytes()[b.Len()-1] != '\n' {
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}

// templateMessage is an error of text/template as "line 3: .foo: there is no key "foo"".
func templateMessage(err error) string {
	place := regexp.MustCompile(`^template: ` + templateName + `:(\d+)(?::\d+)?: (?:executing ".*?" at <(.*?)>(: ))?`)
	return strings.NewReplacer(
		" started at "+templateName+":", " that began in line ",
		"map has no entry for key", "there is no key",
		"nil pointer evaluating interface {}.", "null has no key ",
	).Replace(place.ReplaceAllString(err.Error(), "line $1: $2$3"))
}

// decimal is a number with a fraction, which a template prints as JSON does: 1500000, not 1.5e+06.
type decimal float64

// String is the number as in the document of json.
func (d decimal) String() string { return string(appendJSON(nil, float64(d), compact)) }

// templateFunctions are json and join, and the comparisons of the language over numbers of both
// kinds: text/template has no order for an age of 90.5 and 600.
func templateFunctions() template.FuncMap {
	ordered := func(holds func(int) bool) func(a, b any) (bool, error) {
		return func(a, b any) (bool, error) {
			c, err := compareInTemplate(a, b)
			return holds(c), err
		}
	}
	return template.FuncMap{
		"json": func(v any) string { return string(appendJSON(nil, shapeValue(v), compact)) },
		"join": joinInTemplate,
		"eq":   equalInTemplate,
		"ne":   func(a, b any) (bool, error) { same, err := equalInTemplate(a, b); return !same, err },
		"lt":   ordered(func(c int) bool { return c < 0 }),
		"le":   ordered(func(c int) bool { return c <= 0 }),
		"gt":   ordered(func(c int) bool { return c > 0 }),
		"ge":   ordered(func(c int) bool { return c >= 0 }),
	}
}

// joinInTemplate refuses null, which is no list.
func joinInTemplate(list any, separator string) (string, error) {
	elements, isList := list.([]any)
	if !isList {
		return "", errors.New("it takes a list and the text between its elements")
	}
	words := make([]string, len(elements))
	for i, v := range elements {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, separator), nil
}

// equalInTemplate is whether the first equals one of the others. Null equals only null.
func equalInTemplate(first any, others ...any) (bool, error) {
	if len(others) == 0 {
		return false, errors.New("it needs 2 arguments")
	}
	a := oneKindOfNumber(first)
	for _, other := range others {
		b := oneKindOfNumber(other)
		if a != nil && b != nil && (reflect.TypeOf(a) != reflect.TypeOf(b) || !reflect.TypeOf(a).Comparable()) {
			return false, errors.New("only two numbers, two texts and two booleans are compared")
		}
		if a == b {
			return true, nil
		}
	}
	return false, nil
}

// compareInTemplate is the order of two numbers, or of two texts.
func compareInTemplate(a, b any) (int, error) {
	switch a := oneKindOfNumber(a).(type) {
	case float64:
		if b, both := oneKindOfNumber(b).(float64); both {
			return cmp.Compare(a, b), nil
		}
	case string:
		if b, both := b.(string); both {
			return cmp.Compare(a, b), nil
		}
	}
	return 0, errors.New("only two numbers and two texts have an order")
}

// oneKindOfNumber is a value in which every number is a float64.
func oneKindOfNumber(v any) any {
	switch v := v.(type) {
	case int:
		return float64(v)
	case decimal:
		return float64(v)
	}
	return v
}
