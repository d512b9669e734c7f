package output

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

func open(t *testing.T, p *Printer, spec ListSpec[box]) *List[box] {
	t.Helper()
	l, err := NewList(p, spec)
	require.NoError(t, err)
	return l
}

func TestListKeepsItsBooks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		use  func(l *List[box])
		want map[string]any // top-level keys
		code int
	}{
		"untouched": {func(*List[box]) {}, map[string]any{"complete": true, "truncated": false, "interrupted": false}, 0},
		"truncated is complete": {
			func(l *List[box]) { l.Truncated() },
			map[string]any{"complete": true, "truncated": true},
			0,
		},
		"incomplete without a failure": {
			func(l *List[box]) { l.Incomplete() },
			map[string]any{"complete": false},
			0,
		},
		"nil is no failure": {
			func(l *List[box]) { l.Fail(nil) },
			map[string]any{"complete": true},
			0,
		},
		"another part succeeded": {
			func(l *List[box]) { l.Succeeded(); l.Fail(down()) },
			map[string]any{"complete": false},
			3,
		},
		"a failed item leaves the list complete": {
			func(l *List[box]) { _ = l.AddFailed(boxes()[0], fault.New(fault.KindUnverified, "still there")) },
			map[string]any{"complete": true},
			8,
		},
		"unverified among others stays unverified": {
			func(l *List[box]) {
				_ = l.Add(boxes()[0])
				_ = l.AddFailed(boxes()[1], fault.New(fault.KindUnverified, "still there"))
			},
			map[string]any{"complete": true},
			8,
		},
		"interrupted": {
			func(l *List[box]) { _ = l.Add(boxes()[0]); l.Fail(context.Canceled) },
			map[string]any{"complete": false, "interrupted": true},
			130,
		},
		"extra keys": {
			func(l *List[box]) {
				l.Set(struct{ RunID string }{"r1"})
				l.Set(struct{ Counts map[string]int }{map[string]int{"selected": 2}})
			},
			map[string]any{"run_id": "r1", "counts": map[string]any{"selected": 2.0}},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(place{})
			l := open(t, s.printer(t, "json"), boxSpec())
			tc.use(l)
			assert.Equal(t, tc.code, fault.ExitCode(l.Close()))
			document := parse(t, "json", s.out.String())
			for key, want := range tc.want {
				assert.Equal(t, want, document[key], key)
			}
		})
	}
}

func TestCloseAs(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	l := open(t, s.printer(t, "ndjson"), boxSpec())
	require.NoError(t, l.Add(boxes()[0]))
	err := l.CloseAs(fault.New(fault.KindFound, "one is stuck"))
	assert.Equal(t, 10, fault.ExitCode(err))
	assert.Contains(t, s.out.String(), `"exit_code":10`)
}

func TestAWrongUseAfterTheFirstItemStillClosesTheDocument(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	l := open(t, s.printer(t, "json"), boxSpec())
	require.NoError(t, l.Add(boxes()[0]))
	l.Fail(fault.Usage("profile prod is wrong").At("prod", ""))
	assert.Equal(t, 3, fault.ExitCode(l.Close()), "one part of several")
	assert.Len(t, parse(t, "json", s.out.String())["errors"], 1)

	s = newStage(place{})
	l = open(t, s.printer(t, "json"), boxSpec())
	require.NoError(t, l.Add(boxes()[0]))
	assert.Equal(t, 2, fault.ExitCode(l.CloseAs(fault.Usage("late"))))
	assert.Len(t, parse(t, "json", s.out.String())["items"], 1)
}

func TestKeyOrderOfAList(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	l := open(t, s.printer(t, "json"), boxSpec())
	l.Set(struct{ Total int }{1})
	require.NoError(t, l.Close())
	var keys []string
	for line := range strings.Lines(s.out.String()) {
		if key, _, ok := strings.Cut(line, ":"); ok {
			keys = append(keys, strings.Trim(key, ` "`))
		}
	}
	assert.Equal(t, []string{"schema", "items", "complete", "truncated", "total", "errors", "interrupted"}, keys)
}

// TestJSONAgreesWithTheOtherDocuments holds the streamed document against the one that yaml
// and jq are made from.
func TestJSONAgreesWithTheOtherDocuments(t *testing.T) {
	t.Parallel()
	for name, sc := range scenes() {
		streamed, whole, yaml := newStage(place{}), newStage(place{}), newStage(place{})
		play(t, streamed, streamed.printer(t, "json"), sc)
		play(t, whole, whole.printer(t, "jq=."), sc)
		play(t, yaml, yaml.printer(t, "yaml"), sc)
		assert.Equal(t, parse(t, "json", whole.out.String()), parse(t, "json", streamed.out.String()), name)
		again, err := json.Marshal(parse(t, "yaml", yaml.out.String()))
		require.NoError(t, err)
		assert.JSONEq(t, streamed.out.String(), string(again), name)
	}
}

func TestUnknownColumnWritesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	_, err := NewList(s.printer(t, "json", func(o *Options) { o.Columns = []string{"nope"} }), boxSpec())
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	assert.Empty(t, s.out.String()+s.err.String())
}

func TestColumnsSelectInEveryFormat(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"table":             "CPU\tREF\n1.5\tlocal/0123abcd\n",
		"wide":              "CPU\tREF\n1.5\tlocal/0123abcd\n",
		"csv":               "cpu,ref\n1.5,local/0123abcd\n",
		"ndjson":            `{"cpu":1.5,"ref":"local/0123abcd"}` + "\n" + `{"event":"summary","items":1,"errors":0,"complete":true,"exit_code":0,"interrupted":false}` + "\n",
		"name":              "local/0123abcd\n",
		"jq=.items[0]|keys": `["cpu","ref"]` + "\n",
	} {
		s := newStage(place{})
		l := open(t, s.printer(t, format, func(o *Options) { o.Columns = []string{"cpu", "ref"} }), boxSpec())
		require.NoError(t, l.Add(boxes()[0]))
		require.NoError(t, l.Close())
		assert.Equal(t, want, s.out.String(), format)
	}
}

func TestNameFallsBackToTheFirstColumn(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	spec := ListSpec[string]{Columns: []Column[string]{{Name: "check", Value: func(s string) any { return s }}}}
	l, err := NewList(s.printer(t, "name"), spec)
	require.NoError(t, err)
	require.NoError(t, l.Add("cgroup\n2"))
	require.NoError(t, l.Close())
	assert.Equal(t, `cgroup\n2`+"\n", s.out.String())
	assert.Empty(t, referenceColumn(nil))
}

func TestQuietHidesTheEmptyNote(t *testing.T) {
	t.Parallel()
	s := newStage(place{width: 80})
	require.NoError(t, open(t, s.printer(t, "table", func(o *Options) { o.Quiet = true }), boxSpec()).Close())
	assert.Empty(t, s.out.String()+s.err.String())
}

func TestLinesInsteadOfATable(t *testing.T) {
	t.Parallel()
	spec := boxSpec()
	spec.Line = func(b box) string { return b.note }
	for name, at := range map[string]place{"pipe": {}, "terminal": {width: 40}} {
		s := newStage(at)
		l := open(t, s.printer(t, "table"), spec)
		for _, b := range boxes()[:2] {
			require.NoError(t, l.Add(b))
		}
		assert.Equal(t, "quiet\n=cmd|'/C calc', a \"long\" note\\nwith \\x1b[31mred\\x1b[0m and \\u202ebidi <&> 日本\n", s.out.String(), name+": at once and whole")
		require.NoError(t, l.Close())
	}
}

func TestOnePageInsteadOfATable(t *testing.T) {
	t.Parallel()
	spec := boxSpec()
	spec.Human = func(s *Sheet, items []box) { s.Section("boxes").Field("how many", len(items)) }
	for name, tc := range map[string]struct {
		at      place
		format  string
		columns []string
		want    string
	}{
		"terminal":      {place{width: 80, env: []string{"NO_COLOR=1"}}, "table", nil, "boxes\n  how many  2\n"},
		"pipe":          {place{}, "table", []string{"cpu"}, "CPU\n1.5\n\n"},
		"columns asked": {place{width: 80, env: []string{"NO_COLOR=1"}}, "table", []string{"cpu"}, "CPU\n1.5\n-\n"},
		"csv":           {place{width: 80}, "csv", []string{"cpu"}, "cpu\n1.5\n\n"},
	} {
		s := newStage(tc.at)
		l := open(t, s.printer(t, tc.format, func(o *Options) { o.Columns = tc.columns }), spec)
		for _, b := range boxes()[:2] {
			require.NoError(t, l.Add(b))
			require.NoError(t, l.Flush())
		}
		require.NoError(t, l.Close())
		assert.Equal(t, tc.want, s.out.String(), name)
	}
	pipe := newStage(place{})
	l := open(t, pipe.printer(t, "table"), spec)
	require.NoError(t, l.Add(boxes()[0]))
	assert.Contains(t, pipe.out.String(), "REF\t", "in a pipe each row goes out at once")
	empty := newStage(place{width: 80})
	require.NoError(t, open(t, empty.printer(t, "table"), spec).Close())
	assert.Empty(t, empty.out.String())
}

func TestPipesGetRowsAtOnce(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"table", "csv", "json", "ndjson", "name"} {
		s := newStage(place{})
		l := open(t, s.printer(t, format), boxSpec())
		require.NoError(t, l.Add(boxes()[0]))
		assert.Contains(t, s.out.String(), "local/0123abcd", format)
	}
}

func TestRowsInARushShareAWrite(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"table", "csv", "json", "ndjson", "name"} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(place{})
			l := open(t, s.printer(t, format), boxSpec())
			for range 20 {
				require.NoError(t, l.Add(boxes()[0]))
			}
			assert.Equal(t, 1, s.out.written(), "%s: the first row does not wait", format)
			time.Sleep(gatherFor)
			synctest.Wait()
			assert.Equal(t, 2, s.out.written(), "%s: the others do not wait for what never comes", format)
			require.NoError(t, l.Add(boxes()[0]))
			assert.Equal(t, 2, s.out.written(), "%s: again a rush", format)
			require.NoError(t, l.Flush())
			assert.Equal(t, 3, s.out.written(), "%s: unless it is flushed", format)
		})
	}
}

func TestATerminalShowsWhatThereIsWhileSomebodyHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(place{width: 80})
		l := open(t, s.printer(t, "table"), boxSpec())
		for _, b := range boxes()[:2] {
			require.NoError(t, l.Add(b))
			time.Sleep(quietFor - 1)
			assert.Empty(t, s.out.String(), "others may come")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		for _, b := range boxes()[:2] {
			assert.Contains(t, s.out.String(), b.ref.String(), "nobody came")
		}
		assert.Equal(t, 3, strings.Count(s.out.String(), "\n"), "a heading and two rows")
		require.NoError(t, l.Add(boxes()[2]))
		assert.Equal(t, 4, strings.Count(s.out.String(), "\n"), "late ones wait for nobody")
		require.NoError(t, l.Close())
		assert.Equal(t, 4, strings.Count(s.out.String(), "\n"))
	})
}

func TestGatheredRowsKeepTheirPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(place{})
		s.Stderr.Writer = &s.out // as with 2>&1
		p := s.printer(t, "name")
		l := open(t, p, boxSpec())
		for _, b := range boxes()[:2] {
			require.NoError(t, l.Add(b))
		}
		p.Note("a word")
		require.NoError(t, l.Add(boxes()[0]))
		require.NoError(t, p.Line("a line"))
		first, second := boxes()[0].ref.String(), boxes()[1].ref.String()
		assert.Equal(t, first+"\n"+second+"\nsbx: a word\n"+first+"\na line\n", s.out.String())
	})
}

func TestAFullDiskBehindTheScenesIsToldByTheNextRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(place{})
		row := len(boxes()[0].ref.String()) + 1
		s.Stdout.Writer = &tap{left: row, reason: syscall.ENOSPC}
		l := open(t, s.printer(t, "name"), boxSpec())
		require.NoError(t, l.Add(boxes()[0]))
		require.NoError(t, l.Add(boxes()[0]), "it waits")
		time.Sleep(gatherFor)
		synctest.Wait()
		require.ErrorIs(t, l.Add(boxes()[0]), syscall.ENOSPC)
		require.Error(t, l.Close())
	})
}

func TestOneRowPerItemWhateverTheText(t *testing.T) {
	t.Parallel()
	nasty := boxes()[0]
	nasty.note = "a\tb\nc\r\nd\u2028e"
	nasty.ref = sandbox.Ref{Provider: "p\n", ID: "i\t"}
	for format, lines := range map[string]int{"table": 2, "csv": 2, "ndjson": 2, "name": 1, `template={{range .items}}{{.ref}}{{.note}}{{"\n"}}{{end}}`: 1} {
		s := newStage(place{})
		l := open(t, s.printer(t, format), boxSpec())
		require.NoError(t, l.Add(nasty))
		require.NoError(t, l.Close())
		assert.Equal(t, lines, strings.Count(s.out.String(), "\n"), format)
		if format == "table" {
			assert.Equal(t, 8, strings.Count(s.out.String(), "\t"), "four tabs in each line")
		}
	}
}

func TestCSVCell(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   any
		want string
	}{
		"formula":         {"=1+1", "'=1+1"},
		"plus":            {"+1", "'+1"},
		"minus":           {"-1", "'-1"},
		"at":              {"@sum", "'@sum"},
		"tab":             {"\tx", `'\tx`},
		"carriage return": {"\rx", `'\rx`},
		"number":          {-1.5, "-1.5"},
		"inside":          {"a=b", "a=b"},
		"empty":           {"", ""},
		"unknown":         {nil, ""},
		"map":             {map[string]string{"=a": "b"}, "'=a=b"},
	} {
		assert.Equal(t, tc.want, csvCell(shapeValue(tc.in)), name)
	}
}

// FuzzRows holds that no text breaks a row or reaches a terminal unescaped.
func FuzzRows(f *testing.F) {
	f.Add("a\tb\nc", "=x")
	f.Add("\x1b[31m", "\u202e")
	f.Add("\xff\"", ",")
	f.Add("日本語日本語日本語日本語", "…")
	f.Add("0", strings.Repeat("\xa8", 9))
	f.Fuzz(func(t *testing.T, note, id string) {
		for _, at := range []place{{}, {width: 40, env: []string{"NO_COLOR=1"}}} {
			for _, format := range []string{"table", "csv"} {
				s := newStage(at)
				l := open(t, s.printer(t, format), boxSpec())
				require.NoError(t, l.Add(box{ref: sandbox.Ref{ID: id}, note: note}))
				require.NoError(t, l.Close())
				got := s.out.String()
				if key := "ref:"; strings.HasPrefix(got, key) { // no room for the columns: a line per column
					for line := range strings.Lines(strings.TrimPrefix(got, key)) {
						assert.Regexp(t, `^(note:| |\n$)`, line, "%q", got)
					}
				} else {
					assert.Equal(t, 2, strings.Count(got, "\n"), "%q", got)
				}
				assert.False(t, strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(got), forbidden), "%q", got)
			}
		}
	})
}

func BenchmarkTable10000(b *testing.B)  { benchmark(b, place{width: 120}, "table") }
func BenchmarkPipe10000(b *testing.B)   { benchmark(b, place{}, "table") }
func BenchmarkJSON10000(b *testing.B)   { benchmark(b, place{}, "json") }
func BenchmarkNDJSON10000(b *testing.B) { benchmark(b, place{}, "ndjson") }
func BenchmarkCSV10000(b *testing.B)    { benchmark(b, place{}, "csv") }
func BenchmarkYAML10000(b *testing.B)   { benchmark(b, place{}, "yaml") }

func benchmark(b *testing.B, at place, format string) {
	b.Helper()
	f, err := ParseFormat(b.Context(), format)
	require.NoError(b, err)
	many := make([]box, 10000)
	for i := range many {
		many[i] = boxes()[i%3]
		many[i].ref.ID = fmt.Sprintf("%08x", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		s := newStage(at)
		l, err := NewList(New(s.Process, Options{Format: f}), boxSpec())
		require.NoError(b, err)
		for _, item := range many {
			_ = l.Add(item)
		}
		require.NoError(b, l.Close())
	}
}
