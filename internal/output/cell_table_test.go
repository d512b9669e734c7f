package output_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/output"
)

// TestCellTable: it leaves out what `table` leaves out, and every line is as wide as it is asked to be.
func TestCellTable(t *testing.T) {
	t.Parallel()
	type item struct{ id, why, none string }
	columns := []output.Column[item]{
		{Name: "id", Whole: true, Value: func(i item) any { return i.id }},
		{Name: "none", Value: func(i item) any { return i.none }},
		{Name: "spare", Spare: true, Value: func(item) any { return "12345678" }},
		{Name: "wide", Level: output.Wide, Value: func(item) any { return "wide" }},
		{Name: "why", Value: func(i item) any { return i.why }, Tone: func(item) output.Tone { return output.Bad }},
	}
	items := []item{{"t-1", "short", ""}, {"t-22", "a reason that is long\x1b[2J", ""}}
	plain := output.Cells{Plain: true}
	assert.Equal(t, []string{
		"ID    SPARE     WHY                           ",
		"t-1   12345678  short                         ",
		`t-22  12345678  a reason that is long\x1b[2J  `,
	}, output.CellTable(plain, columns, items, 46, time.Now()))
	assert.Equal(t, []string{"ID    WHY     ", "t-1   short   ", "t-22  a reaso…"}, output.CellTable(plain, columns, items, 14, time.Now()))
	for width := range 60 {
		for _, line := range output.CellTable(plain, columns, items, width, time.Now()) {
			assert.Equal(t, width, output.Width(line), "%q", line)
		}
	}
	assert.Contains(t, output.CellTable(output.Cells{}, columns, items, 46, time.Now())[1], "\x1b[31mshort\x1b[m")
	assert.Len(t, output.CellTable(plain, columns, nil, 46, time.Now()), 1)
}
