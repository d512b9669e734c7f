package output

import (
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/sandbox"
)

// How long rows on a terminal wait for others to be aligned and sorted with.
const (
	// quietFor is longer than an API needs between two pages, and shorter than a person waits
	// for a hanging provider.
	quietFor = 300 * time.Millisecond
	// quietSorted is for a sorted list: a row that comes later is out of order.
	quietSorted = time.Second
)

// grid is the table on a terminal. Rows wait for the first flush, which fixes the columns and
// their widths, or until no other has come for some time; later rows appear at once.
type grid struct {
	mu      sync.Mutex // the timer of quiet shows rows too
	quiet   *time.Timer
	wait    time.Duration // of quiet
	sorted  bool          // by the words of each row
	printer *Printer
	heads   []heading
	columns []tableColumn
	shown   []int // columns, by index
	dropped []int // columns for which the terminal has no room, by index
	stacked bool  // rows are lines of "key: value", for a screen reader
	waiting []record
	running []bool // of the columns, by index: a row that waits has running text there
	begun   bool
}

func newGrid(p *Printer, heads []heading, sorted bool) *grid {
	g := &grid{
		printer: p, heads: heads, columns: make([]tableColumn, len(heads)), running: make([]bool, len(heads)), stacked: p.out.accessible, wait: quietFor,
		sorted: sorted,
	}
	if sorted {
		g.wait = quietSorted
	}
	return g
}

func (*grid) selection() want { return wantCells }

func (g *grid) addRecord(r record) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, h := range g.heads {
		g.running[i] = g.running[i] || runningText(r.values[i], h.name)
	}
	r.values = nil // those of ten thousand would fill the memory
	g.waiting = append(g.waiting, r)
	switch {
	case g.begun:
		return g.showWaitingRows()
	case g.quiet == nil:
		g.quiet = time.AfterFunc(g.wait, func() { _ = g.flushRows() }) // the next write reports what failed
	default:
		g.quiet.Reset(g.wait)
	}
	return nil
}

// closeDocument says which columns the terminal has no room for.
func (g *grid) closeDocument(ending) error {
	err := g.flushRows()
	if len(g.dropped) > 0 && err == nil {
		names := make([]string, len(g.dropped))
		for i, at := range g.dropped {
			names[i] = g.heads[at].name
		}
		g.printer.Note(noRoom(names) + "; a wider terminal or --columns shows more")
	}
	return err
}

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
	if g.sorted {
		slices.SortStableFunc(g.waiting, func(a, b record) int { return strings.Compare(a.order, b.order) })
	}
	titles := make([]string, len(g.heads))
	for i, h := range g.heads {
		titles[i] = h.title
	}
	again := g.begun && !g.stacked && g.hasHiddenValue()
	if !g.begun || again {
		g.chooseColumns(titles)
	}
	header := !g.begun || again
	waiting := g.waiting
	g.begun, g.waiting = true, nil
	clear(g.running)
	for part := range slices.Chunk(waiting, rowsAtOnce) {
		var text []byte
		var err error
		if g.stacked {
			text = []byte(g.stackRows(titles, part, !header))
		} else {
			text, err = g.alignPart(titles, part, header)
		}
		if again {
			text = append([]byte{'\n'}, text...)
		}
		if err := g.printer.writeStdout(text, err); err != nil {
			return err
		}
		header, again = false, false
	}
	return nil
}

// rowsAtOnce is how many rows are drawn at once: a table of ten thousand needs 40 MB.
const rowsAtOnce = 500

// alignPart writes rows in columns.
func (g *grid) alignPart(titles []string, part []record, header bool) ([]byte, error) {
	var rows [][]string
	if header {
		rows = append(rows, pickShown(titles, g.shown))
	}
	widths := g.shownWidths()
	for _, r := range part {
		rows = append(rows, g.rowCells(r, widths))
	}
	return alignRows(rows, widths)
}

// stackRows writes each row as lines of "key: value"; an empty line is between two rows.
func (g *grid) stackRows(titles []string, part []record, continued bool) string {
	var b strings.Builder
	for n, r := range part {
		if continued || n > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(g.printer.out.stackRow("", titles, r.texts))
	}
	return b.String()
}

// chooseColumns fixes the columns and their widths by the rows that wait.
func (g *grid) chooseColumns(titles []string) {
	rows := make([][]string, len(g.waiting))
	for n, r := range g.waiting {
		rows[n] = r.texts
	}
	for i, h := range g.heads {
		g.columns[i] = tableColumn{title: titles[i], spare: h.spare, keep: h.keep, ref: h.name == "ref", text: !h.whole && g.running[i]}
	}
	measureTable(g.columns, rows)
	for _, at := range g.shown { // of the table before: a column comes, and none goes, so that tables do not alternate
		g.columns[at].empty = false
	}
	if g.stacked {
		g.shown = g.shown[:0]
		for i := range g.heads {
			g.shown = append(g.shown, i)
		}
		return
	}
	g.shown, g.dropped = fitTable(g.columns, g.printer.out.width, keepColumns{all: len(g.printer.Columns) > 0})
}

// hasHiddenValue says that a later row has a value for a column that was left out because the
// first rows have none: then the table begins anew.
func (g *grid) hasHiddenValue() bool {
	for i, c := range g.columns {
		if c.empty && !slices.Contains(g.shown, i) && slices.ContainsFunc(g.waiting, func(r record) bool { return !isNoValue(r.texts[i]) }) {
			return true
		}
	}
	return false
}

func (g *grid) shownWidths() []int {
	widths := make([]int, len(g.shown))
	for i, at := range g.shown {
		widths[i] = g.columns[at].width
	}
	return widths
}

// rowCells are the cells of one row. A later row may be wider than the first ones: its texts are
// cut, and what cannot be cut moves the cells behind it rather than lose an id.
func (g *grid) rowCells(r record, widths []int) []string {
	cells := pickShown(r.texts, g.shown)
	if g.printer.out.width > 0 {
		g.cutLongRow(cells, widths)
	}
	for i, at := range g.shown {
		if !isNoValue(cells[i]) {
			cells[i] = g.printer.out.paint(cells[i], r.tones[at])
		}
	}
	return cells
}

// cutLongRow cuts the texts of a row to their columns, the last one to the end of the line,
// and then takes from them, from the right, what other cells are wider than their columns by.
func (g *grid) cutLongRow(cells []string, widths []int) {
	for i, at := range g.shown[:len(g.shown)-1] {
		if g.columns[at].text {
			cells[i] = g.printer.out.cut(cells[i], widths[i])
		}
	}
	excess := rowWidth(cells, widths) - g.printer.out.width
	for i := len(cells) - 1; i >= 0 && excess > 0; i-- {
		if is := cellWidth(cells[i]); g.columns[g.shown[i]].text && is > minText {
			cells[i] = g.printer.out.cut(cells[i], max(minText, is-excess))
			excess -= is - cellWidth(cells[i])
		}
	}
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
