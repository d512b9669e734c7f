package output

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"sbx/internal/fault"
)

func boxItem() ItemSpec[box] {
	return ItemSpec[box]{
		Schema: "sbx.inspect/v1", Columns: boxColumns(),
		Human: func(s *Sheet, b box) { s.Section("Sandbox").Field("ref", b.ref).Field("state", b.state) },
	}
}

func report() Document {
	return Document{
		Schema: "sbx.drill/v1",
		Fields: Fields{{"cases", []string{"leak"}}, {"left_behind", nil}},
		Human:  func(s *Sheet) { s.Text("one case, nothing left behind") },
	}
}

// showing is one way to print a document; each must be valid in every format.
func showing() map[string]func(p *Printer, errs ...error) error {
	return map[string]func(p *Printer, errs ...error) error{
		"item":        func(p *Printer, errs ...error) error { return ShowItem(p, boxItem(), boxes()[1], errs...) },
		"free":        func(p *Printer, errs ...error) error { return p.Show(report(), errs...) },
		"failed-list": func(p *Printer, _ ...error) error { return p.Failed("sbx.ls/v1", ShapeList, down()) },
		"failed-item": func(p *Printer, _ ...error) error { return p.Failed("sbx.inspect/v1", ShapeItem, down()) },
		"failed-free": func(p *Printer, _ ...error) error { return p.Failed("sbx.drill/v1", ShapeFree, down()) },
	}
}

func TestDocumentsInEveryFormat(t *testing.T) {
	t.Parallel()
	for name, show := range showing() {
		for _, format := range []string{"table", "json", "ndjson", "yaml", "jq=.schema,.item.ref", "template={{.schema}}"} {
			word, _, _ := strings.Cut(format, "=")
			if strings.HasPrefix(name, "failed") && (word == "jq" || word == "template") {
				continue // no document, see TestFailedWithoutADocument
			}
			t.Run(name+"/"+word, func(t *testing.T) {
				t.Parallel()
				s := newStage(place{})
				change := format
				if word == "template" {
					change = "template={{.schema}} {{len .errors}}"
				}
				err := show(s.printer(t, change), down())
				golden(t, "doc-"+name+"-"+word, fmt.Sprintf("--- stdout\n%s--- stderr\n%s--- exit %d\n", s.out.String(), s.err.String(), fault.ExitCode(err)))
			})
		}
	}
}

func TestFailedWithoutADocument(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"table", "csv", "name", "jq=.", "template=x"} {
		s := newStage(place{})
		err := s.printer(t, format).Failed("sbx.ls/v1", ShapeList, down())
		assert.Equal(t, 7, fault.ExitCode(err), format)
		assert.Empty(t, s.out.String(), format)
		assert.Equal(t, "sbx: error: daytona: list: 503 Service Unavailable\nsbx: hint: try again later\n", s.err.String(), format)
	}
}

func TestStructuredOutputIsAlwaysOneDocument(t *testing.T) {
	t.Parallel()
	causes := map[string][]error{
		"fine":        nil,
		"unavailable": {down()},
		"several":     {down(), fault.New(fault.KindAuth, "no token").At("prod", "list")},
		"interrupted": {down(), context.Canceled},
		"terminated":  {fault.New(fault.KindTerminated, "interrupted")},
	}
	for cause, errs := range causes {
		for _, items := range [][]box{nil, boxes()} {
			for _, format := range []string{"json", "yaml"} {
				s := newStage(place{})
				play(t, s, s.printer(t, format), scene{items: items, errs: errs})
				document := parse(t, format, s.out.String())
				assert.Len(t, document["errors"], len(errs), cause)
				assert.Len(t, document["items"], len(items), cause)
				assert.Equal(t, cause == "interrupted" || cause == "terminated", document["interrupted"], cause)
				assert.Equal(t, len(errs) == 0, document["complete"], cause)
				assert.Empty(t, s.err.String(), "%s: the errors are in the document only", cause)
			}
		}
	}
}

func parse(t *testing.T, format, text string) map[string]any {
	t.Helper()
	var document map[string]any
	if format == "yaml" {
		require.NoError(t, yaml.Unmarshal([]byte(text), &document), text)
		return document
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	require.NoError(t, decoder.Decode(&document), text)
	assert.False(t, decoder.More(), "one document: %s", text)
	return document
}

func TestWrongUseLeavesStdoutEmpty(t *testing.T) {
	t.Parallel()
	wrong := func() error { return fault.Usage("no such flag").WithHint("see --help") }
	const one = `{"provider":"","kind":"usage","message":"no such flag","hint":"see --help","retryable":false,"retry_after_seconds":null}`
	const object = `{"schema":"sbx.error/v1","error":` + one + `,"errors":[` + one + `],"exit_code":2}` + "\n"
	ways := map[string]func(t *testing.T, p *Printer) error{
		"failed": func(_ *testing.T, p *Printer) error { return p.Failed("sbx.ls/v1", ShapeList, wrong()) },
		"report": func(_ *testing.T, p *Printer) error { p.Report(wrong()); return wrong() },
		"list": func(t *testing.T, p *Printer) error {
			t.Helper()
			l, err := NewList(p, boxSpec())
			require.NoError(t, err)
			l.Fail(wrong())
			return l.Close()
		},
	}
	for name, way := range ways {
		for _, format := range []string{"json", "ndjson", "yaml"} {
			s := newStage(place{})
			assert.Equal(t, 2, fault.ExitCode(way(t, s.printer(t, format))), name)
			assert.Empty(t, s.out.String(), "%s as %s", name, format)
			assert.JSONEq(t, object, s.err.String(), "%s as %s", name, format)
			assert.Equal(t, 1, strings.Count(s.err.String(), "\n"), "one line")
		}
		s := newStage(place{})
		assert.Equal(t, 2, fault.ExitCode(way(t, s.printer(t, "table"))), name)
		assert.Equal(t, "sbx: error: no such flag\nsbx: hint: see --help\n", s.err.String(), name)
	}
}

func TestUnknownColumnOfAnItem(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	p := s.printer(t, "json", func(o *Options) { o.Columns = []string{"reff"} })
	err := ShowItem(p, boxItem(), boxes()[0])
	assert.Equal(t, 2, fault.ExitCode(err))
	assert.Empty(t, s.out.String())
	assert.Contains(t, s.err.String(), "did you mean ref?")
}

func TestItemAsRowsAndLines(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"name": "local/0123abcd\n",
		"csv":  "ref,cpu\nlocal/0123abcd,1.5\n",
		"json": "{\n  \"schema\": \"sbx.inspect/v1\",\n  \"item\": {\n    \"ref\": \"local/0123abcd\",\n    \"cpu\": 1.5\n  },\n  \"errors\": [],\n  \"interrupted\": false\n}\n",
	} {
		s := newStage(place{})
		require.NoError(t, ShowItem(s.printer(t, format, func(o *Options) { o.Columns = []string{"ref", "cpu"} }), boxItem(), boxes()[0]))
		assert.Equal(t, want, s.out.String(), format)
	}
	s := newStage(place{width: 80})
	require.NoError(t, ShowItem(s.printer(t, "table"), ItemSpec[box]{Line: func(b box) string { return b.ref.String() + "\x07" }}, boxes()[0]))
	assert.Equal(t, `local/0123abcd\x07`+"\n", s.out.String())
}

func TestItemWithColumnsOnTheTerminal(t *testing.T) {
	t.Parallel()
	s := newStage(place{width: 80, env: []string{"NO_COLOR=1"}})
	require.NoError(t, ShowItem(s.printer(t, "table", func(o *Options) { o.Columns = []string{"stuck", "created_at"} }), boxItem(), boxes()[1]))
	assert.Equal(t, "stuck       STUCK\ncreated_at  2026-03-01T11:59:57Z (3s ago)\n", s.out.String())
}

func TestFreeDocumentHasNoRows(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"csv", "name", "nagios"} {
		s := newStage(place{})
		err := s.printer(t, format).Show(report())
		assert.Equal(t, 2, fault.ExitCode(err), format)
		assert.Empty(t, s.out.String(), format)
		assert.Contains(t, s.err.String(), "no "+format+" output")
	}
}

func TestFreeDocumentWithoutHumanForm(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	d := report()
	d.Human = nil
	require.NoError(t, s.printer(t, "table").Show(d))
	assert.Equal(t, "cases        leak\nleft_behind  -\n", s.out.String())
}

func TestExpressionsThatFailPrintNothing(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"jq=.items[0].ref, error(\"no\")", "jq=.items | .ref", "template={{range .items}}{{.nosuch}}{{end}}"} {
		s := newStage(place{})
		code, _ := play(t, s, s.printer(t, format), scene{items: boxes(), errs: []error{down()}})
		assert.Equal(t, 2, code, format)
		assert.Empty(t, s.out.String(), format)
		assert.Contains(t, s.err.String(), "503 Service Unavailable", "the other error is not lost")
		assert.Contains(t, s.err.String(), "see the document with -o json")
	}
}

func TestJQ(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`.items[].ref`:                     "local/0123abcd\nprod/i-77\nprod/unknown-age\n",
		`[.items[].memory_mb]`:             "[64,1.5,null]\n",
		`.items[0] | {ref, cpu}`:           `{"cpu":1.5,"ref":"local/0123abcd"}` + "\n",
		`.items | length`:                  "3\n",
		`"a\tb\nc\u001b"`:                  "a\tb\nc\\x1b\n",
		`["\u202e"]`:                       `["\u202e"]` + "\n",
		`.items[] | select(.cpu==9)`:       "",
		`1, halt, 2`:                       "1\n",
		`env.HOME, $ENV.HOME`:              "null\nnull\n",
		`100000000000000000000000 | . + 1`: "100000000000000010000000\n",
		`9223372036854775807 + 1`:          "9223372036854776000\n",
	} {
		s := newStage(place{})
		code, _ := play(t, s, s.printer(t, "jq="+expression), scene{items: boxes()})
		assert.Equal(t, 0, code, "%s: %s", expression, s.err.String())
		if strings.Contains(expression, "00000") || strings.Contains(expression, "922") {
			assert.Regexp(t, `^[0-9.e+]+\n$`, s.out.String())
			continue
		}
		assert.Equal(t, want, s.out.String(), expression)
	}
}

func TestTemplateFunctions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{{range .items}}{{.ref}},{{end}}`:     "local/0123abcd,prod/i-77,prod/unknown-age,\n",
		`{{(index .items 0).labels | json}}`:   `{"a":"b","team":"agents"}` + "\n",
		`{{join .errors ","}}`:                 "",
		"{{len .items}}\n":                     "3\n",
		`{{(index .items 0).memory_mb}}`:       "64\n",
		`{{eq (index .items 0).stuck "true"}}`: "false\n",
	} {
		s := newStage(place{})
		code, _ := play(t, s, s.printer(t, "template="+text), scene{items: boxes()})
		assert.Equal(t, 0, code, "%s: %s", text, s.err.String())
		assert.Equal(t, want, s.out.String(), text)
	}
}

func TestPlainTakesEveryNumber(t *testing.T) {
	t.Parallel()
	same := func(s string) string { return s }
	assert.Equal(t, []any{1, 2, 1.8446744073709552e19, 0.5, nil}, plainValue(shapeValue([]any{1, uint64(2), uint64(1<<64 - 1), 0.5, nil}), same, func(f float64) any { return f }))
}

func TestJudge(t *testing.T) {
	t.Parallel()
	auth, gone := fault.New(fault.KindAuth, "a"), fault.New(fault.KindGone, "g")
	for name, tc := range map[string]struct {
		errs []error
		done bool
		want fault.Kind
	}{
		"nothing":              {nil, true, fault.KindNone},
		"one":                  {[]error{auth}, false, fault.KindAuth},
		"one, something done":  {[]error{auth}, true, fault.KindPartial},
		"same kinds":           {[]error{auth, fault.New(fault.KindAuth, "b")}, false, fault.KindAuth},
		"kinds differ":         {[]error{auth, gone}, false, fault.KindPartial},
		"found stays found":    {[]error{fault.New(fault.KindFound, "f")}, true, fault.KindFound},
		"unverified stays":     {[]error{fault.New(fault.KindUnverified, "u")}, true, fault.KindUnverified},
		"refused stays":        {[]error{fault.New(fault.KindRefused, "r")}, true, fault.KindRefused},
		"a signal wins":        {[]error{auth, context.Canceled}, true, fault.KindCanceled},
		"TERM wins":            {[]error{fault.New(fault.KindTimeout, "t"), fault.New(fault.KindTerminated, "t")}, true, fault.KindTerminated},
		"then the time limit":  {[]error{auth, context.DeadlineExceeded}, true, fault.KindTimeout},
		"a signal in a join":   {[]error{errors.Join(auth, context.Canceled)}, true, fault.KindCanceled},
		"without a kind":       {[]error{&fault.Error{Err: errors.New("x")}}, false, fault.KindUnknown},
		"a foreign error":      {[]error{errors.New("x")}, false, fault.KindUnknown},
		"foreign, others done": {[]error{errors.New("x")}, true, fault.KindPartial},
	} {
		got := decisiveError(tc.errs, tc.done)
		assert.Equal(t, tc.want, fault.KindOf(got), name)
		assert.Equal(t, tc.want, fault.KindOf(reportedError(got)), "%s, shown", name)
	}
}
