package output

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func TestLayOut(t *testing.T) {
	t.Parallel()
	got, err := layOut([]int{4, 7, 3}, [][]string{
		{"A", "LONGER", "C"},
		{"日本", paintText("running", Good), "x"},
		{"", "a  b", ""},
		{" b", "", "c c"},
	})
	require.NoError(t, err)
	plain := strings.NewReplacer("\x1b[32m", "", "\x1b[m", "", "\x1b[0m", "").Replace(string(got))
	assert.Equal(t, strings.Join([]string{
		"A     LONGER   C",
		"日本  running  x",
		"      a  b",
		" b             c c",
		"",
	}, "\n"), plain)
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text  string
		limit int
		want  string
	}{
		{"abcdef", 6, "abcdef"},
		{"abcdef", 5, "abcd…"},
		{"abcdef", 1, "…"},
		{"abcdef", 0, "abcdef"},
		{"abcdef", -1, "abcdef"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"", 1, ""},
	} {
		got := truncateCells(tc.text, tc.limit)
		assert.Equal(t, tc.want, got)
		assert.True(t, tc.limit < 1 || cellWidth(got) <= tc.limit)
	}
}

func TestShrink(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		widths   []int
		cuttable []bool
		limit    int
		want     []int
		cut      int
	}{
		"fits":                   {[]int{10, 10}, []bool{true, true}, 22, []int{10, 10}, -1},
		"widest text gives":      {[]int{30, 10, 20}, []bool{false, true, true}, 54, []int{30, 10, 10}, 2},
		"no further than floor":  {[]int{30, 20}, []bool{false, true}, 20, []int{30, 8}, 1},
		"no text, no cut":        {[]int{30, 20}, []bool{false, false}, 20, []int{30, 20}, -1},
		"unlimited":              {[]int{300}, []bool{true}, 0, []int{300}, -1},
		"one column of one text": {[]int{300}, []bool{true}, 80, []int{80}, 0},
	} {
		cut := shrinkWidths(tc.widths, tc.cuttable, tc.limit, minText)
		assert.Equal(t, tc.cut, cut, name)
		assert.Equal(t, tc.want, tc.widths, name)
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
	assert.Equal(t, "REF             STATE    CREATED    STUCK  NOTE\nlocal/0123abcd  running  1h30m ago         quiet\n", first)
	require.NoError(t, l.Add(boxes()[2]))
	later := boxes()[0]
	later.ref.ID = "22"
	require.NoError(t, l.Add(later))
	assert.Equal(t, "prod/unknown-age  unknown  -                 -\nlocal/22        running  1h30m ago         quiet\n",
		strings.TrimPrefix(s.out.String(), first), "at once; a wide id spills, the next row is in line again")
	require.NoError(t, l.Close())
}

func TestATerminalOfUnknownWidthCutsNothing(t *testing.T) {
	t.Parallel()
	s := newStage(place{width: 80})
	s.Stdout.Width = 0
	l := open(t, s.printer(t, "table"), boxSpec())
	require.NoError(t, l.Add(boxes()[1]))
	require.NoError(t, l.Close())
	assert.NotContains(t, s.out.String(), ellipsis)
}
