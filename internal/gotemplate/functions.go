package gotemplate

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// builtins are the functions of the language, except and, or.
func builtins() map[string]Function {
	return map[string]Function{
		"not":     one(func(v any) (any, error) { return !truth(v), nil }),
		"len":     one(length),
		"index":   index,
		"slice":   slice,
		"print":   func(a []any) (any, error) { return fmt.Sprint(a...), nil },
		"println": func(a []any) (any, error) { return fmt.Sprintln(a...), nil },
		"printf":  printf,
		"html": func(a []any) (any, error) {
			return strings.ReplaceAll(html.EscapeString(texts(a)), "\x00", "\uFFFD"), nil
		},
		"urlquery": func(a []any) (any, error) { return url.QueryEscape(texts(a)), nil },
		"js":       func(a []any) (any, error) { return escapeJS(texts(a)), nil },
		"eq":       equalAny,
		"ne":       two(func(a, b any) (any, error) { same, err := equal(a, b); return !same, err }),
		"lt":       two(func(a, b any) (any, error) { c, err := order(a, b); return c < 0, err }),
		"le":       two(func(a, b any) (any, error) { c, err := order(a, b); return c <= 0, err }),
		"gt":       two(func(a, b any) (any, error) { c, err := order(a, b); return c > 0, err }),
		"ge":       two(func(a, b any) (any, error) { c, err := order(a, b); return c >= 0, err }),
	}
}

func one(f func(any) (any, error)) Function {
	return func(a []any) (any, error) {
		if len(a) != 1 {
			return nil, fmt.Errorf("it takes 1 argument, not %d", len(a))
		}
		return f(a[0])
	}
}

func two(f func(a, b any) (any, error)) Function {
	return func(a []any) (any, error) {
		if len(a) != 2 {
			return nil, fmt.Errorf("it takes 2 arguments, not %d", len(a))
		}
		return f(a[0], a[1])
	}
}

// kindOf names the kind of a value, as JSON does.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int, float64:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("%T", v)
}

// truth says that a value is not empty: not nil, false, 0, "", or without elements.
func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

func length(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return len(v), nil
	case []any:
		return len(v), nil
	case map[string]any:
		return len(v), nil
	}
	return nil, fmt.Errorf("%s has no length", kindOf(v))
}

// index is index COLLECTION KEY...: the element of a list, the value of a key, the byte of a text.
func index(a []any) (any, error) {
	if len(a) == 0 {
		return nil, errors.New("it needs a list or an object")
	}
	value := a[0]
	for _, key := range a[1:] {
		switch of := value.(type) {
		case map[string]any:
			name, isText := key.(string)
			if !isText {
				return nil, fmt.Errorf("an object has keys that are texts, not %s", kindOf(key))
			}
			value = of[name]
		case []any:
			i, err := position(key, len(of)-1)
			if err != nil {
				return nil, err
			}
			value = of[i]
		case string:
			i, err := position(key, len(of)-1)
			if err != nil {
				return nil, err
			}
			value = int(of[i])
		default:
			return nil, fmt.Errorf("%s has no elements", kindOf(value))
		}
	}
	return value, nil
}

// position is a number from 0 to last.
func position(v any, last int) (int, error) {
	i, whole := v.(int)
	switch {
	case !whole:
		return 0, fmt.Errorf("a position is a whole number, not %s", kindOf(v))
	case i < 0 || i > last:
		return 0, fmt.Errorf("%d is out of range: there are %d", i, last+1)
	}
	return i, nil
}

// slice is slice LIST FROM TO, of a list or a text; without TO it reaches to the end.
func slice(a []any) (any, error) {
	if len(a) == 0 || len(a) > 3 {
		return nil, errors.New("it takes a list or a text, and at most 2 positions")
	}
	switch of := a[0].(type) {
	case string:
		from, to, err := bounds(a[1:], len(of))
		if err != nil {
			return nil, err
		}
		return of[from:to], nil
	case []any:
		from, to, err := bounds(a[1:], len(of))
		if err != nil {
			return nil, err
		}
		return of[from:to], nil
	}
	return nil, fmt.Errorf("%s cannot be sliced", kindOf(a[0]))
}

// bounds are the positions of slice in something of that size.
func bounds(given []any, size int) (from, to int, err error) {
	at := []int{0, size}
	for i, v := range given {
		if at[i], err = position(v, size); err != nil {
			return 0, 0, err
		}
	}
	if at[0] > at[1] {
		return 0, 0, fmt.Errorf("%d is behind %d", at[0], at[1])
	}
	return at[0], at[1], nil
}

func printf(a []any) (any, error) {
	if len(a) == 0 {
		return nil, errors.New("it needs a format")
	}
	format, isText := a[0].(string)
	if !isText {
		return nil, fmt.Errorf("the format is a text, not %s", kindOf(a[0]))
	}
	return fmt.Sprintf(format, a[1:]...), nil
}

// texts joins arguments as print does; null is what an action prints for it.
func texts(a []any) string {
	shown := slices.Clone(a)
	for i, v := range shown {
		if v == nil {
			shown[i] = display(nil)
		}
	}
	return fmt.Sprint(shown...)
}

// escapeJS escapes a text for a string of JavaScript.
func escapeJS(text string) string {
	var b strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case strings.ContainsRune(`\'"`, r):
			b.WriteString(`\` + string(r))
		case strings.ContainsRune("<>&=", r), r < ' ', r >= utf8.RuneSelf && !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteString(text[:size]) // a byte that is no character stays as it is
		}
		text = text[size:]
	}
	return b.String()
}

// equalAny is eq A B...: whether the first equals one of the others.
func equalAny(a []any) (any, error) {
	if len(a) < 2 {
		return nil, errors.New("it needs 2 arguments")
	}
	for _, other := range a[1:] {
		if same, err := equal(a[0], other); err != nil || same {
			return same, err
		}
	}
	return false, nil
}

// equal compares two values that are no list and no object. nil equals only nil.
func equal(a, b any) (bool, error) {
	for _, v := range []any{a, b} {
		switch v.(type) {
		case []any, map[string]any:
			return false, fmt.Errorf("%s cannot be compared", kindOf(v))
		}
	}
	if a == nil || b == nil {
		return a == b, nil
	}
	if x, isNumber := numberOf(a); isNumber {
		if y, both := numberOf(b); both {
			return x == y, nil
		}
	}
	if kindOf(a) != kindOf(b) {
		return false, fmt.Errorf("%s and %s cannot be compared", kindOf(a), kindOf(b))
	}
	return a == b, nil
}

// order compares two numbers, or two texts.
func order(a, b any) (int, error) {
	x, isNumber := numberOf(a)
	y, both := numberOf(b)
	if isNumber && both {
		return cmp.Compare(x, y), nil
	}
	s, isText := a.(string)
	t, bothTexts := b.(string)
	if isText && bothTexts {
		return cmp.Compare(s, t), nil
	}
	kinds := []string{kindOf(a), kindOf(b)}
	slices.Sort(kinds)
	return 0, fmt.Errorf("%s and %s have no order", kinds[0], kinds[1])
}

func numberOf(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
