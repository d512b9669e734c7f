package output

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func TestAlignRows(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"A", "LONGER", "C"},
		{"日本", screen{colour: true}.paint("running", Good), "x"},
		{"", "a  b", ""},
		{" b", "", "c c"},
		{"too wide", "b", "c"},
	}
	widths := []int{4, 7, 3}
	got, err := alignRows(rows, widths)
	require.NoError(t, err)
	for n, line := range strings.Split(strings.TrimSuffix(string(got), "\n"), "\n") {
		assert.Equal(t, cellWidth(line), rowWidth(rows[n], widths))
	}
	plain := strings.NewReplacer("\x1b[32m", "", "\x1b[m", "", "\x1b[0m", "").Replace(string(got))
	assert.Equal(t, strings.Join([]string{
		"A     LONGER   C",
		"日本  running  x",
		"      a  b",
		" b             c c",
		"too wide  b        c",
		"",
	}, "\n"), plain)
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text  string
		limit int
		want  string
		ascii string
	}{
		{"abcdef", 6, "abcdef", "abcdef"},
		{"abcdef", 5, "abcd…", "ab..."},
		{"abcdef", 1, "…", "."},
		{"abcdef", 0, "abcdef", "abcdef"},
		{"abcdef", -1, "abcdef", "abcdef"},
		{"日本語", 5, "日本…", "日..."},
		{"日本語", 4, "日…", "..."},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…", ".."},
		{"", 1, "", ""},
	} {
		assert.Equal(t, tc.want, screen{}.cut(tc.text, tc.limit))
		assert.Equal(t, tc.ascii, screen{ascii: true}.cut(tc.text, tc.limit))
		assert.True(t, tc.limit < 1 || cellWidth(tc.want) <= tc.limit)
	}
}

func TestFitTable(t *testing.T) {
	t.Parallel()
	id, text := tableColumn{title: "ID", width: 30}, tableColumn{title: "TEXT", width: 40, text: true}
	ref := tableColumn{title: "REF", width: 20, ref: true}
	spare, empty := tableColumn{title: "SPARE", width: 10, spare: true}, tableColumn{title: "EMPTY", width: 5, empty: true}
	for name, tc := range map[string]struct {
		columns []tableColumn
		limit   int
		keep    bool
		shown   []int
		widths  []int
		dropped []int
	}{
		"fits":                       {[]tableColumn{id, text}, 72, false, []int{0, 1}, []int{30, 40}, nil},
		"unlimited":                  {[]tableColumn{id, text}, 0, false, []int{0, 1}, []int{30, 40}, nil},
		"empty goes":                 {[]tableColumn{id, empty, text}, 0, false, []int{0, 2}, []int{30, 5, 40}, nil},
		"asked for stays":            {[]tableColumn{id, empty}, 0, true, []int{0, 1}, []int{30, 5}, nil},
		"all empty":                  {[]tableColumn{empty, empty}, 9, false, []int{0}, []int{5, 5}, nil},
		"text gives first":           {[]tableColumn{id, spare, text}, 70, false, []int{0, 1, 2}, []int{30, 10, 26}, nil},
		"then what can be spared":    {[]tableColumn{id, spare, text}, 59, false, []int{0, 2}, []int{30, 10, 27}, nil},
		"then text gives more":       {[]tableColumn{id, text}, 40, false, []int{0, 1}, []int{30, 8}, nil},
		"the widest text gives":      {[]tableColumn{text, {title: "T", width: 20, text: true}}, 42, false, []int{0, 1}, []int{20, 20}, nil},
		"what keeps more gives last": {[]tableColumn{text, {title: "WHY", width: 20, text: true, keep: 18}}, 30, false, []int{0, 1}, []int{10, 18}, nil},
		"and gives when it must":     {[]tableColumn{text, {title: "WHY", width: 20, text: true, keep: 18}}, 20, false, []int{0, 1}, []int{9, 9}, nil},
		"the right one goes":         {[]tableColumn{id, text}, 39, false, []int{0}, []int{30, 40}, []int{1}},
		"no text, no cut":            {[]tableColumn{id}, 29, false, []int{0}, []int{30}, nil},
		"asked for and cut, no drop": {[]tableColumn{id, spare, text}, 52, true, []int{0, 1, 2}, []int{30, 10, 8}, nil},
		"the reference stays":        {[]tableColumn{text, ref, id}, 20, false, []int{1}, []int{40, 20, 30}, []int{0, 2}},
		"asked for stays, too wide":  {[]tableColumn{id, text}, 39, true, []int{0, 1}, []int{30, 8}, nil},
		"a reason goes last":         {[]tableColumn{ref, id, {title: "WHY", width: 20, text: true, keep: 18}}, 30, false, []int{0, 2}, []int{20, 30, 8}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown, dropped := fitTable(tc.columns, tc.limit, keepColumns{all: tc.keep})
			assert.Equal(t, tc.shown, shown)
			assert.Equal(t, tc.dropped, dropped)
			for i, w := range tc.widths {
				assert.Equal(t, w, tc.columns[i].width)
			}
		})
	}
}

func TestRunningText(t *testing.T) {
	t.Parallel()
	assert.True(t, runningText("note", "note"))
	assert.True(t, runningText(map[string]string{}, "labels"))
	for key, v := range map[string]any{"ref": "local/x", "id": "x", "provider": "p", "from": sandbox.Ref{}, "state": sandbox.StateRunning, "n": 1, "none": nil} {
		assert.False(t, runningText(v, key), key)
	}
}

func TestLaterRowsKeepTheWidths(t *testing.T) {
	t.Parallel()
	s := newStage(place{width: 60, env: []string{"NO_COLOR=1"}})
	l := open(t, s.printer(t, "table"), boxSpec())
	require.NoError(t, l.Add(boxes()[0]))
	assert.Empty(t, s.out.String(), "rows wait for the first flush")
	require.NoError(t, l.Flush())
	require.NoError(t, l.Flush())
	first := s.out.String()
	assert.Equal(t, "REF             STATE    CREATED    NOTE\nlocal/0123abcd  running  1h30m ago  quiet\n", first)
	require.NoError(t, l.Add(boxes()[2]))
	later := boxes()[0]
	later.ref.ID = "22"
	require.NoError(t, l.Add(later))
	assert.Equal(t, "prod/unknown-age  unknown  -          -\nlocal/22        running  1h30m ago  quiet\n",
		strings.TrimPrefix(s.out.String(), first), "at once; a wide id spills, the next row is in line again")
	second := s.out.String()
	later.stuck = sandbox.True
	require.NoError(t, l.Add(later))
	assert.Equal(t, "\nREF       STATE    CREATED    STUCK  NOTE\nlocal/22  running  1h30m ago  STUCK  quiet\n",
		strings.TrimPrefix(s.out.String(), second), "a value of a column that was left out is not lost")
	third := s.out.String()
	later.stuck = sandbox.False
	require.NoError(t, l.Add(later))
	assert.Equal(t, "local/22  running  1h30m ago         quiet\n", strings.TrimPrefix(s.out.String(), third), "and a column that came stays")
	require.NoError(t, l.Close())
}

func TestATerminalOfUnknownWidthCutsNothing(t *testing.T) {
	t.Parallel()
	s := newStage(place{width: 80})
	s.Stdout.Width = 0
	l := open(t, s.printer(t, "table"), boxSpec())
	require.NoError(t, l.Add(boxes()[1]))
	require.NoError(t, l.Close())
	assert.NotContains(t, s.out.String(), "…")
}
