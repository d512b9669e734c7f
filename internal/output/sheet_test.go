package output

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func page() *Sheet {
	s := &Sheet{}
	s.Section("Sandbox local/0123abcd")
	s.Field("state", sandbox.StateFailed)
	s.Field("created_at", noon().Add(-90*60*1e9))
	s.Field("age_seconds", 5400.0)
	s.Field("memory_mb", (*int64)(nil))
	s.Field("labels", map[string]string{"team": "agents", "evil": "\x1b[2J"})
	s.FieldTone("stuck", "no sign of life for ten minutes although the main process is still there and waits on a connection", Bad)
	s.Section("Timeline")
	s.Table([]string{"at", "event", "detail"}, [][]any{
		{noon(), "started", "pid 12"},
		{noon().Add(1e9), "ended\n", "the program was killed by the kernel because it ran into its memory limit of 64 MiB", "dropped"},
		{noon()},
	})
	s.Section("Last output")
	s.Text("first line\r\n\tsecond line with \x1b[31mcolour\x1b[0m\n\nfourth line that is long enough to be wrapped on a narrow terminal of eighty columns, twice at forty")
	s.Table([]string{"none"}, nil)
	return s
}

func TestSheetInEveryPlace(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]place{
		"tty80": {width: 80}, "tty40": {width: 40}, "pipe": {}, "nocolor": {width: 80, env: []string{"NO_COLOR=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(at)
			p := s.printer(t, "table")
			require.NoError(t, p.Show(Document{Human: func(sheet *Sheet) { *sheet = *page() }}))
			golden(t, "sheet-"+name, strings.ReplaceAll(s.out.String(), "\x1b", "<ESC>"))
		})
	}
}

func TestSheetFitsTheTerminal(t *testing.T) {
	t.Parallel()
	text, err := page().renderPage(view{screen: screen{width: 80}, now: noon()})
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		assert.LessOrEqual(t, cellWidth(strings.TrimSuffix(line, "\n")), 80, line)
		assert.Equal(t, strings.TrimRight(line, " \n"), strings.TrimSuffix(line, "\n"), "no trailing space")
	}
}

func TestEmptySheet(t *testing.T) {
	t.Parallel()
	empty, err := (&Sheet{}).renderPage(view{})
	require.NoError(t, err)
	assert.Empty(t, empty)
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text  string
		limit int
		want  []string
	}{
		"short":      {"a b", 10, []string{"a b"}},
		"unlimited":  {"a b c", 0, []string{"a b c"}},
		"at spaces":  {"aa bb cc", 5, []string{"aa bb", "cc"}},
		"long word":  {"a https://example.com/x b", 6, []string{"a", "https://example.com/x", "b"}},
		"indented":   {"   aa bb", 6, []string{"   aa", "bb"}},
		"wide runes": {"日本 語日", 5, []string{"日本", "語日"}},
		"empty":      {"", 5, []string{""}},
	} {
		assert.Equal(t, tc.want, WrapText(tc.text, tc.limit, ""), name)
	}
}

// FuzzSheet holds that a page never lets a control rune through.
func FuzzSheet(f *testing.F) {
	f.Add("\x1b[2J", 80)
	f.Add("a\tb\nc\u202e", 20)
	f.Add("\xff word word word", 1)
	f.Fuzz(func(t *testing.T, text string, columns int) {
		s := &Sheet{}
		s.Section(text).Field(text, text).Field("error", errors.New(text)).Table([]string{text, "b"}, [][]any{{text, []string{text}}}).Text(text)
		out, err := s.renderPage(view{screen: screen{width: columns % 200, ascii: columns%2 == 0, accessible: columns%3 == 0}, now: noon()})
		require.NoError(t, err)
		assert.False(t, strings.ContainsFunc(strings.ReplaceAll(string(out), "\n", ""), forbidden), "%q", out)
	})
}
