package output

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestANarrowTerminalSparesColumns: those that may be spared, and only as many as it takes;
// then others from the right, which a note names. Columns without any value are left out
// everywhere. Who names columns gets them.
func TestANarrowTerminalSparesColumns(t *testing.T) {
	t.Parallel()
	type row struct{ ref, note, idle, task string }
	columns := []Column[row]{
		{Name: "ref", Value: func(r row) any { return r.ref }},
		{Name: "note", Value: func(r row) any { return r.note }},
		{Name: "idle", Spare: true, Value: func(r row) any { return r.idle }},
		{Name: "task", Value: func(r row) any { return r.task }},
	}
	rows := []row{{"prod/0123456789", "x", "1m", ""}, {"prod/abcdefghij", "y", "20m", ""}}
	for name, tc := range map[string]struct {
		width int
		asked []string
		rows  []row
		want  string
	}{
		"wide enough":         {80, nil, rows, "REF NOTE IDLE"},
		"nothing in it":       {30, nil, rows, "REF NOTE IDLE"},
		"it can be spared":    {24, nil, rows, "REF NOTE"},
		"asked for":           {24, []string{"ref", "idle", "task"}, rows, "REF IDLE TASK"},
		"one value is one":    {30, nil, append([]row{{"prod/1", "z", "1s", "t-1"}}, rows...), "REF NOTE TASK"},
		"no width is known":   {0, nil, rows, "REF NOTE IDLE"},
		"nothing helps":       {10, nil, rows, "REF"},
		"no row, no question": {10, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(place{width: max(tc.width, 1)})
			s.Stdout.Width = tc.width
			p := s.printer(t, "table")
			p.Columns = tc.asked
			list, err := NewList(p, ListSpec[row]{Schema: "sbx.x/v1", Columns: columns})
			require.NoError(t, err)
			for _, r := range tc.rows {
				require.NoError(t, list.Add(r))
			}
			require.NoError(t, list.Close())
			first, _, _ := strings.Cut(s.out.String(), "\n")
			assert.Equal(t, tc.want, strings.Join(strings.Fields(first), " "))
			assert.Equal(t, name == "nothing helps", strings.Contains(s.err.String(), "no room for note"), s.err.String())
			assert.Equal(t, len(tc.rows), strings.Count(s.out.String(), "prod/"), "no row is lost, and no reference cut")
		})
	}
}
