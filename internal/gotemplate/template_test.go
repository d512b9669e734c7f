package gotemplate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/gotemplate"
)

// document has a value of every kind.
func document() map[string]any {
	return map[string]any{
		"name": "sbx", "count": 3, "share": 0.25, "zero": 0, "yes": true, "no": false, "nothing": nil, "empty": "", "quote": `<a href='x'>&"\`,
		"items": []any{
			map[string]any{"ref": "local/a", "state": "running", "age": 1.5, "labels": map[string]any{"team": "x", "env": "y"}},
			map[string]any{"ref": "local/b", "state": "failed", "age": 90.0, "labels": map[string]any{}},
			map[string]any{"ref": "local/c", "state": "running", "age": 7.0, "labels": nil},
		},
		"words": []any{"one", "two", "three"}, "none": []any{}, "nested": map[string]any{"a": map[string]any{"b": "deep"}},
	}
}

// texts are templates with which text/template and this package do the same.
func texts() []string {
	return []string{
		"", "plain", "{{.name}}", "{{.count}} {{.share}} {{.yes}} {{.nothing}} {{.empty}}", "{{.nested.a.b}}", "{{.items}}", "{{.nested}}",
		`{{range .items}}{{.ref}} {{.state}}{{"\n"}}{{end}}`,
		`{{range $i, $x := .items}}{{$i}}:{{$x.ref}}{{if $x.labels}}{{range $k, $v := $x.labels}} {{$k}}={{$v}}{{end}}{{else}} none{{end}};{{end}}`,
		"{{range .none}}x{{else}}empty{{end}}", "{{range .nothing}}x{{else}}null{{end}}", "{{range 3}}{{.}},{{end}}", "{{range $i := 2}}{{$i}}{{end}}", "{{range 0}}x{{else}}no{{end}}",
		"{{range .words}}{{if eq . \"two\"}}{{continue}}{{end}}{{.}} {{end}}", "{{range .words}}{{if eq . \"two\"}}{{break}}{{end}}{{.}} {{end}}",
		"{{range $k, $v := .nested}}{{$k}}{{end}}", "{{range .nested}}{{.b}}{{end}}",
		"{{with .nested.a}}{{.b}} {{$.name}}{{end}}", "{{with .nothing}}x{{else}}none{{end}}", "{{with .nothing}}x{{else with .name}}{{.}}{{end}}", "{{with $x := .name}}{{$x}}{{end}}",
		"{{if .yes}}a{{else if .no}}b{{else}}c{{end}}", "{{if .zero}}a{{else if .empty}}b{{else}}c{{end}}", "{{if and .yes .count}}a{{end}}{{if or .no .zero}}b{{else}}c{{end}}",
		"{{and .yes .name}} {{or .zero .name}} {{and .zero .nosuch}} {{or .name .nosuch}}", "{{not .yes}} {{not .nothing}} {{.yes | not}}",
		"{{len .name}} {{len .items}} {{len .nested}}", "{{index .words 1}} {{index .items 0 \"ref\"}} {{index .nested \"a\" \"b\"}} {{index .name 0}}", `{{index .nested "nosuch"}}`,
		"{{slice .name 1}} {{slice .name 0 2}} {{slice .words 1 2}} {{slice .name}}",
		`{{printf "%s-%d-%.2f-%v" .name .count .share .yes}}`, "{{print .name 1 2 .count}}", "{{println .name .count}}", `{{"a" | printf "%s%s" "b"}}`,
		"{{html .quote}} {{js .quote}} {{urlquery .quote}}", "{{html 1 \"<\"}}", "{{html .nothing}}{{js .nothing 1}}{{urlquery .nothing}}{{html}}", "{{js `\u200b\u00ad\x7f\xff\u2028é😀`}}{{html `\x01`}}{{html \"\\x00\"}}", `{{js "\u2028 \u0001 é ="}}`,
		`{{eq .name "sbx"}} {{eq .count 1 2 3}} {{ne .name "x"}} {{lt .count 4}} {{le .count 3}} {{gt .count 3}} {{ge .count 3}} {{lt "a" "b"}} {{eq .share 0.25}} {{lt .share 1.0}}`,
		`{{define "row"}}[{{.ref}}]{{end}}{{range .items}}{{template "row" .}}{{end}}`, `{{template "x"}}{{define "x"}}{{.}}{{end}}`, `{{block "b" .name}}<{{.}}>{{end}}`,
		"{{$x := 1}}{{if true}}{{$x = 2}}{{end}}{{$x}}", "{{$x := 1}}{{if true}}{{$x := 2}}{{$x}}{{end}}{{$x}}", "{{range .words}}{{$w := .}}{{$w}}{{end}}", "{{$a := .nested}}{{$a.a.b}}",
		"{{$last := \"\"}}{{range $i, $w := .words}}{{$last = $w}}{{end}}{{$last}}", "{{$i := 9}}{{$w := 0}}{{range $i, $w = .words}}{{end}}{{$i}}{{$w}}",
		"{{/* comment */}}a{{- \" b \" -}}  c", "a  {{- .name}}  ", "{{(index .items 0).ref}}", "{{(len .name) | printf \"%03d\"}}", "{{true}} {{\"q\"}} {{`raw`}} {{3}} {{1.5}} {{'a'}} {{0x10}} {{1e3}}",
		"{{.items | len | printf \"%d items\"}}", "{{range $i, $e := .items}}{{if $i}}, {{end}}{{$e.ref}}{{end}}", "{{if eq (len .items) 3}}three{{end}}", "{{upper .name}}", "{{.name | upper}}",
		"{{define \"only\"}}x{{end}}", "{{range .items}}{{range .labels}}{{.}}{{end}}{{end}}", "{{print nil}}", "{{printf \"%v\" .nothing}}", "{{if not (eq .count 3)}}x{{else}}y{{end}}",
	}
}

func upperTheirs(s string) string { return strings.ToUpper(s) }

func upperOurs(a []any) (any, error) { return strings.ToUpper(fmt.Sprint(a...)), nil }

func theirs(text string) (string, error) {
	t, err := template.New("template").Option("missingkey=error").Funcs(template.FuncMap{"upper": upperTheirs}).Parse(text)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = t.Execute(&b, document())
	return b.String(), err
}

func ours(text string) (string, error) {
	t, err := gotemplate.Parse(text, map[string]gotemplate.Function{"upper": upperOurs})
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = t.Execute(context.Background(), &b, document())
	return b.String(), err
}

// TestSameAsTextTemplate compares the output with that of the standard library.
func TestSameAsTextTemplate(t *testing.T) {
	t.Parallel()
	for _, text := range texts() {
		want, errTheirs := theirs(text)
		got, err := ours(text)
		if errTheirs != nil && strings.Contains(errTheirs.Error(), "incomplete or empty template") {
			errTheirs = nil // definitions alone print nothing
		}
		require.NoError(t, errTheirs, text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

// TestMistakes: what is refused, where, and why. text/template refuses these too.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{{.foo":                             "line 1: unclosed action",
		"a\n{{nosuch 1}}":                    `line 2: function "nosuch" not defined`,
		"{{if .yes}}\n":                      "line 2: unexpected EOF",
		"{{.foo.bar}}":                       `line 1: .foo.bar: there is no key "foo"`,
		"\n{{.nested.b}}":                    `line 2: .nested.b: there is no key "b"`,
		"{{.name.x}}":                        `there is no key "x" in a text`,
		"{{.nothing.x}}":                     `there is no key "x" in null`,
		"{{range .items}}{{.nosuch}}{{end}}": `there is no key "nosuch"`,
		"{{range .name}}{{end}}":             "range needs a list, not a text",
		"{{range $a, $b := 3}}{{end}}":       "one variable",
		"{{template \"nosuch\"}}":            `template "nosuch" is not defined`,
		"{{define \"a\"}}{{template \"a\"}}{{end}}{{template \"a\"}}": "deep",
		"{{len 3}}":              "len: a number has no length",
		"{{len .name .name}}":    "it takes 1 argument, not 2",
		"{{index .words 3}}":     "3 is out of range: there are 3",
		"{{index .words -1}}":    "-1 is out of range",
		"{{index .words \"a\"}}": "a position is a whole number, not a text",
		"{{index .nested 1}}":    "keys that are texts",
		"{{index .count 1}}":     "a number has no elements",
		"{{slice .nested 1}}":    "an object cannot be sliced",
		"{{slice .name 2 1}}":    "2 is behind 1",
		"{{slice .name 1 9}}":    "9 is out of range",
		"{{eq .name 1}}":         "a text and a number cannot be compared",
		"{{eq .items .items}}":   "a list cannot be compared",
		"{{eq 1}}":               "it needs 2 arguments",
		"{{lt .yes .no}}":        "a boolean and a boolean have no order",
		"{{lt .name 1}}":         "a number and a text have no order",
		"{{.name 1}}":            "takes no argument",
		"{{1 | .name}}":          "takes no argument",
		"{{nil}}":                "nil is not a command",
		"{{printf 1}}":           "the format is a text, not a number",
		"{{and}}":                "and needs an argument",
	} {
		_, errTheirs := theirs(text)
		require.Error(t, errTheirs, text)
		_, err := ours(text)
		require.ErrorContains(t, err, want, text)
		_, known := errors.AsType[*gotemplate.Error](err)
		assert.True(t, known, text)
	}
}

// TestNumbersCompare: a document has whole numbers and others, and text/template compares no 1.5 with a 2.
func TestNumbersCompare(t *testing.T) {
	t.Parallel()
	got, err := ours("{{range .items}}{{if gt .age 5}}{{.ref}} {{end}}{{end}}{{eq 1 1.0}} {{eq .nothing nil}} {{ne .name nil}}")
	require.NoError(t, err)
	assert.Equal(t, "local/b local/c true true true", got)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestExecuteEnds(t *testing.T) {
	t.Parallel()
	loop, err := gotemplate.Parse("{{range 1000000000}}{{end}}", nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	require.ErrorIs(t, loop.Execute(ctx, &bytes.Buffer{}, nil), gone)

	text, err := gotemplate.Parse("text", nil)
	require.NoError(t, err)
	require.ErrorIs(t, text.Execute(t.Context(), failingWriter{gone}, nil), gone)
}

// FuzzSameAsTextTemplate: what both execute gives the same output, and nothing panics.
func FuzzSameAsTextTemplate(f *testing.F) {
	for _, text := range texts() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "template") || strings.Contains(text, "block") || strings.ContainsAny(text, "0123456789%") {
			return // they may call each other for minutes, or print 9^9 blanks
		}
		want, errTheirs := theirs(text)
		got, err := ours(text)
		if err == nil && errTheirs == nil && got != want {
			t.Fatalf("%q: %q, and text/template %q", text, got, want)
		}
		if err != nil && errTheirs == nil {
			t.Fatalf("%q: %v, and text/template takes it", text, err)
		}
	})
}
