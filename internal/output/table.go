package output

import (
	"bytes"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// alignRows writes the lines of a table, without borders and without trailing spaces. No cell is
// cut here, so a cell that is wider than its column moves those behind it. Cells may have colour.
func alignRows(rows [][]string, widths []int) ([]byte, error) {
	var b bytes.Buffer
	for len(rows) > 0 {
		room := widenColumns(rows[0], widths)
		n := 1
		for n < len(rows) && slices.Equal(widenColumns(rows[n], widths), room) {
			n++
		}
		if err := drawTable(&b, rows[:n], room); err != nil {
			return nil, err
		}
		rows = rows[n:]
	}
	return trimLines(b.Bytes()), nil
}

// widenColumns gives each column at least the width of its cell in this row.
func widenColumns(row []string, widths []int) []int {
	room := slices.Clone(widths)
	for i, cell := range row {
		room[i] = max(room[i], cellWidth(cell))
	}
	return room
}

func drawTable(b *bytes.Buffer, rows [][]string, widths []int) error {
	columns := tw.NewMapper[int, int]()
	for i, w := range widths {
		columns.Set(i, w+gap)
	}
	table := tablewriter.NewTable(b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
		tablewriter.WithEastAsian(tw.Off),
		tablewriter.WithTrimSpace(tw.Off),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithRowAlignment(tw.AlignLeft),
		tablewriter.WithPadding(tw.Padding{Right: strings.Repeat(" ", gap), Overwrite: true}),
		tablewriter.WithStreaming(tw.StreamConfig{Enable: true}),
		tablewriter.WithColumnWidths(columns),
	)
	if err := table.Start(); err != nil {
		return err
	}
	for _, row := range rows {
		if err := table.Append(row); err != nil {
			return err
		}
	}
	return table.Close()
}

// resetColour is what the library writes behind the padding of a cell with colour. The cell has
// ended its own colour, and trailing spaces could not be trimmed.
const resetColour = "\x1b[0m"

func trimLines(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte(resetColour), nil)
	out := text[:0]
	for line := range bytes.Lines(text) {
		out = append(append(out, bytes.TrimRight(line, " \n")...), '\n')
	}
	return out
}

// rowWidth counts the cells of a line of a table up to the end of its last cell with a text.
func rowWidth(row []string, widths []int) int {
	total, spaces := 0, 0
	for i, cell := range row {
		w := cellWidth(cell)
		if w > 0 {
			total += spaces + w
			spaces = 0
		}
		spaces += max(widths[i]-w, 0) + gap
	}
	return total
}
