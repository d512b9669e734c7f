package output

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"sbx/internal/sandbox"
)

// minText is the least that is left of a text column, in cells.
const minText = 8

// quietFor is how long rows on a terminal wait for others to be aligned with: longer than an
// API needs between two pages, shorter than a person waits for a hanging provider.
const quietFor = 300 * time.Millisecond

// grid is the table on a terminal. Rows wait for the first flush, which fixes
// the widths, or until no other has come for quietFor; later rows appear at once.
// Where the line is too long, columns without any value are left out, then those that
// may be spared, unless --columns asks for them; then the widest column of running
// text is cut.
type grid struct {
	mu       sync.Mutex // the timer of quiet shows rows too
	quiet    *time.Timer
	printer  *Printer
	columns  []heading
	widths   []int
	cuttable []bool
	shown    []int // columns, by index
	waiting  []record
	begun    bool
}

func newGrid(p *Printer, columns []heading) *grid {
	g := &grid{printer: p, columns: columns, widths: make([]int, len(columns)), cuttable: make([]bool, len(columns))}
	for i := range columns {
		g.shown = append(g.shown, i)
	}
	growWidths(g.widths, g.columnTitles())
	return g
}

func (*grid) selection() want { return wantCells }

func (g *grid) columnTitles() []string {
	out := make([]string, len(g.columns))
	for i, c := range g.columns {
		out[i] = c.title
	}
	return out
}

func (g *grid) addRecord(r record) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, r)
	switch {
	case g.begun:
		return g.showWaitingRows()
	case g.quiet == nil:
		g.quiet = time.AfterFunc(quietFor, func() { _ = g.flushRows() }) // the next write reports what failed
	default:
		g.quiet.Reset(quietFor)
	}
	return nil
}

func (g *grid) closeDocument(ending) error { return g.flushRows() }

func (g *grid) flushRows() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.showWaitingRows()
}

// showWaitingRows writes the rows that wait. The lock is held.
func (g *grid) showWaitingRows() error {
	if g.quiet != nil {
		g.quiet.Stop()
	}
	if len(g.waiting) == 0 {
		return nil
	}
	widths := g.measureColumns()
	rows := make([][]string, 0, len(g.waiting)+1)
	if !g.begun {
		rows = append(rows, pickShown(g.columnTitles(), g.shown))
	}
	for _, r := range g.waiting {
		rows = append(rows, pickShown(g.paintRow(r), g.shown))
	}
	g.begun, g.waiting = true, nil
	return g.printer.writeStdout(layOut(pickShown(widths, g.shown), rows))
}

// pickShown picks the shown ones of what there is for each column.
func pickShown[T any](all []T, shown []int) []T {
	picked := make([]T, len(shown))
	for i, at := range shown {
		picked[i] = all[at]
	}
	return picked
}

// dropColumns leaves columns out, from the right, until the line fits: first those in
// which no row has a value.
func (g *grid) dropColumns(widths []int) {
	if g.begun || len(g.printer.Columns) > 0 {
		return
	}
	empty := func(i int) bool {
		return !slices.ContainsFunc(g.waiting, func(r record) bool { return r.texts[i] != noValue })
	}
	for _, may := range []func(int) bool{empty, func(i int) bool { return g.columns[i].spare }} {
		for at := len(g.shown) - 1; at > 0 && lineWidth(pickShown(widths, g.shown)) > g.printer.outWidth; at-- {
			if may(g.shown[at]) {
				g.shown = slices.Delete(g.shown, at, at+1)
			}
		}
	}
}

// lineWidth is how wide columns of these widths are together.
func lineWidth(widths []int) int {
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	return total
}

// measureColumns gives the widths of the rows that wait, cuts their text where the line is too
// long, and keeps the widths if they are the first. A later row may be wider: it
// spills rather than loses an id.
func (g *grid) measureColumns() []int {
	widths := slices.Clone(g.widths)
	for _, r := range g.waiting {
		growWidths(widths, r.texts)
		for i, v := range r.values {
			g.cuttable[i] = g.cuttable[i] || runningText(v, g.columns[i].name)
		}
	}
	if g.printer.outWidth > 0 {
		g.dropColumns(widths)
	}
	seen := pickShown(widths, g.shown)
	if cut := shrinkWidths(seen, pickShown(g.cuttable, g.shown), g.printer.outWidth, minText); cut >= 0 {
		at := g.shown[cut]
		widths[at] = seen[cut]
		for _, r := range g.waiting {
			r.texts[at] = truncateCells(r.texts[at], widths[at])
		}
	}
	if !g.begun {
		g.widths = widths
	}
	return widths
}

// runningText says that a value still makes sense when its end is missing; a
// reference, an id or a word of a closed list does not.
func runningText(v any, key string) bool {
	switch v.(type) {
	case string, map[string]string, []string, error:
		return key != "ref" && key != "id" && key != "provider"
	case sandbox.Ref:
		return false
	}
	return false
}

func (g *grid) paintRow(r record) []string {
	if !g.printer.colour {
		return r.texts
	}
	out := make([]string, len(r.texts))
	for i, text := range r.texts {
		out[i] = paintText(text, r.tones[i])
	}
	return out
}

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
