package output

import (
	"bytes"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// gap is the space between two columns.
const gap = 2

// ellipsis replaces the rest of a truncated cell.
const ellipsis = "…"

// cellWidth counts the terminal cells of text without its colour. East Asian
// ambiguous characters count as one, whatever the locale, so that a layout is the
// same everywhere.
func cellWidth(text string) int { return twwidth.WidthWithOptions(text, twwidth.Options{}) }

// truncateCells cuts text to at most limit cells, the last one an ellipsis; a limit below
// one means none.
func truncateCells(text string, limit int) string {
	if limit < 1 || cellWidth(text) <= limit {
		return text
	}
	var b strings.Builder
	used := 0
	for _, r := range text {
		w := cellWidth(string(r))
		if used+w > limit-1 {
			break
		}
		b.WriteRune(r)
		used += w
	}
	return b.String() + ellipsis
}

// growWidths widens widths to hold the cells of row.
func growWidths(widths []int, row []string) {
	for i, cell := range row {
		widths[i] = max(widths[i], cellWidth(cell))
	}
}

// shrinkWidths takes from the widest of the columns that may be cut what the line is too
// wide by, but leaves it at least floor cells. It returns that column, or -1.
func shrinkWidths(widths []int, cuttable []bool, limit, floor int) int {
	total, widest := lineWidth(widths), -1
	for i, w := range widths {
		if cuttable[i] && (widest < 0 || w > widths[widest]) {
			widest = i
		}
	}
	if limit <= 0 || total <= limit || widest < 0 {
		return -1
	}
	widths[widest] = max(floor, widths[widest]-(total-limit))
	return widest
}

// layOut writes rows in columns of the given widths, two spaces apart, without
// borders and without trailing space. No cell may be wider than its column.
func layOut(widths []int, rows [][]string) ([]byte, error) {
	var b bytes.Buffer
	table := borderlessTable(&b, widths)
	if err := table.Start(); err != nil {
		return nil, err
	}
	for _, row := range rows {
		if err := table.Append(row); err != nil {
			return nil, err
		}
	}
	if err := table.Close(); err != nil {
		return nil, err
	}
	return trimLines(b.Bytes()), nil
}

func borderlessTable(b *bytes.Buffer, widths []int) *tablewriter.Table {
	columns := tw.NewMapper[int, int]()
	for i, w := range widths {
		columns.Set(i, w+gap)
	}
	return tablewriter.NewTable(b,
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
}

func trimLines(text []byte) []byte {
	out := text[:0]
	for line := range bytes.Lines(text) {
		out = append(append(out, bytes.TrimRight(line, " \n")...), '\n')
	}
	return out
}
