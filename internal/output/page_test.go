package output

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func TestPages(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		build func(s *Sheet)
		view  view
		want  string
	}{
		"fields line up": {
			func(s *Sheet) { s.Field("a", 1).Field("longer", "x").Field("none", nil) },
			view{},
			"a       1\nlonger  x\nnone    -\n",
		},
		"each group for itself": {
			func(s *Sheet) { s.Field("longer", 1).Text("--").Field("a", 2) },
			view{},
			"longer  1\n--\na  2\n",
		},
		"sections are apart and indented": {
			func(s *Sheet) { s.Section("One").Field("a", 1).Section("Two").Text("t") },
			view{},
			"One\n  a  1\n\nTwo\n  t\n",
		},
		"an instant in a pipe": {
			func(s *Sheet) { s.Field("at", noon().Add(-time.Hour)) },
			view{now: noon()},
			"at  2026-03-01T11:00:00Z\n",
		},
		"an instant on a terminal": {
			func(s *Sheet) { s.Field("at", noon().Add(-time.Hour)) },
			view{now: noon(), screen: screen{tty: true}},
			"at  2026-03-01T11:00:00Z (1h ago)\n",
		},
		"unknown instant": {
			func(s *Sheet) { s.Field("at", Time(time.Time{})) },
			view{screen: screen{tty: true}},
			"at  -\n",
		},
		"values wrap beside their name": {
			func(s *Sheet) { s.Field("why", "one two three four five six seven") },
			view{screen: screen{width: 30}},
			"why  one two three four five\n     six seven\n",
		},
		"names have lines of their own where values have no room": {
			func(s *Sheet) { s.Section("S").Field("why", "one two three four").Field("none", nil) },
			view{screen: screen{width: 14}},
			"S\n  why: one two\n    three four\n  none: -\n",
		},
		"a screen reader wraps by itself": {
			func(s *Sheet) {
				s.Field("why", "one two three four").Table([]string{"ref", "exit_code"}, [][]any{{"a", 1}, {"b", nil}})
			},
			view{screen: screen{width: 14, accessible: true}},
			"why: one two three four\nref: a\nexit code: 1\n\nref: b\n",
		},
		"a locale without umlauts": {
			func(s *Sheet) {
				s.Field("naïve", "日本").Table([]string{"say"}, [][]any{{"a sentence of some length"}})
			},
			view{screen: screen{width: 40, ascii: true}},
			"na\\xefve  \\u65e5\\u672c\nSAY\na sentence of some length\n",
		},
		"an id is never broken": {
			func(s *Sheet) { s.Field("id", "0123456789abcdef") },
			view{screen: screen{width: 10}},
			"id:\n  0123456789abcdef\n",
		},
		"tables are lined up": {
			func(s *Sheet) { s.Table([]string{"k", "value"}, [][]any{{"a", 1}, {"bbb", nil}}) },
			view{},
			"K    VALUE\na    1\nbbb  -\n",
		},
		"tables cut their text": {
			func(s *Sheet) {
				s.Section("S").Table([]string{"ref", "say"}, [][]any{{sandbox.Ref{Provider: "p", ID: "long-id"}, "a sentence of some length"}})
			},
			view{screen: screen{width: 24}},
			"S\n  REF        SAY\n  p/long-id  a sentence…\n",
		},
		"short and long rows": {
			func(s *Sheet) { s.Table([]string{"a", "b"}, [][]any{{"1"}, {"1", "2", "3"}, {}}) },
			view{},
			"A  B\n1\n1  2\n\n",
		},
		"no table without rows": {
			func(s *Sheet) { s.Table([]string{"a"}, nil).Table(nil, [][]any{{1}}) },
			view{},
			"",
		},
		"text keeps its lines": {
			func(s *Sheet) { s.Text("a\r\n\n\tb\x1b[0m\n") },
			view{},
			"a\n\n    b\\x1b[0m\n",
		},
		"colour repeats words": {
			func(s *Sheet) { s.Section("S").Field("state", sandbox.StateFailed).FieldTone("stuck", "yes", Bad) },
			view{screen: screen{colour: true}},
			"\x1b[1mS\x1b[m\n  state  \x1b[31mfailed\x1b[m\n  stuck  \x1b[31myes\x1b[m\n",
		},
		"everything is escaped": {
			func(s *Sheet) {
				s.Section("\x07").Field("\x07", "\x07").Table([]string{"\x07"}, [][]any{{"\x07"}}).Text("\x07")
			},
			view{},
			strings.NewReplacer("B", `\x07`, "H", `\X07`).Replace("B\n  B  B\n  H\n  B\n  B\n"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &Sheet{}
			tc.build(s)
			text, err := s.renderPage(tc.view)
			require.NoError(t, err)
			assert.Equal(t, tc.want, string(text))
		})
	}
}

func TestViewOfThePlace(t *testing.T) {
	t.Parallel()
	assert.Equal(t, view{screen: screen{width: 80, colour: true, tty: true}, now: noon()}, newStage(place{width: 80}).printer(t, "table").pageView())
	assert.Equal(t, view{now: noon()}, newStage(place{}).printer(t, "table").pageView())
}

func TestAPipeHasNoWidth(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	s.Stdout.Width = 10 // left over from a terminal
	assert.Zero(t, s.printer(t, "table").pageView().width, "nothing is wrapped or cut in a pipe")
}

func TestNewWithoutAClock(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	s.Now = nil
	assert.WithinDuration(t, time.Now(), s.printer(t, "table").now(), time.Minute)
}
