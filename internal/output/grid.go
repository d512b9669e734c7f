package output

import (
	"slices"
	"sync"
	"time"

	"sbx/internal/sandbox"
)

// minText is the least that is left of a text column, in cells.
const minText = 8

// quietFor is how long rows on a terminal wait for others to be aligned with: long
// for an API between two pages, short for a person who watches a provider hang.
const quietFor = 300 * time.Millisecond

// grid is the table on a terminal. Rows wait for the first flush, which fixes
// the widths, or until no other has come for quietFor; later rows appear at once.
// Only the widest column of running text is cut.
type grid struct {
	mu       sync.Mutex // the timer of quiet shows rows too
	quiet    *time.Timer
	printer  *Printer
	columns  []heading
	widths   []int
	cuttable []bool
	waiting  []record
	begun    bool
}

func newGrid(p *Printer, columns []heading) *grid {
	g := &grid{printer: p, columns: columns, widths: make([]int, len(columns)), cuttable: make([]bool, len(columns))}
	grow(g.widths, g.titles())
	return g
}

func (*grid) wants() want { return wantCells }

func (g *grid) titles() []string {
	out := make([]string, len(g.columns))
	for i, c := range g.columns {
		out[i] = c.title
	}
	return out
}

func (g *grid) add(r record) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, r)
	switch {
	case g.begun:
		return g.show()
	case g.quiet == nil:
		g.quiet = time.AfterFunc(quietFor, func() { _ = g.flush() }) // the next write tells what failed
	default:
		g.quiet.Reset(quietFor)
	}
	return nil
}

func (g *grid) close(ending) error { return g.flush() }

func (g *grid) flush() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.show()
}

// show writes the rows that wait. The lock is held.
func (g *grid) show() error {
	if g.quiet != nil {
		g.quiet.Stop()
	}
	if len(g.waiting) == 0 {
		return nil
	}
	rows := make([][]string, 0, len(g.waiting)+1)
	if !g.begun {
		rows = append(rows, g.titles())
	}
	widths := g.measure()
	for _, r := range g.waiting {
		rows = append(rows, g.painted(r))
	}
	g.begun, g.waiting = true, nil
	return g.printer.write(layOut(widths, rows))
}

// measure gives the widths of the rows that wait, cuts their text where the line is too
// long, and keeps the widths if they are the first. A later row may be wider: it
// spills rather than loses an id.
func (g *grid) measure() []int {
	widths := slices.Clone(g.widths)
	for _, r := range g.waiting {
		grow(widths, r.texts)
		for i, v := range r.values {
			g.cuttable[i] = g.cuttable[i] || runningText(v, g.columns[i].name)
		}
	}
	cut := shrink(widths, g.cuttable, g.printer.outWidth, minText)
	for _, r := range g.waiting {
		if cut >= 0 {
			r.texts[cut] = truncate(r.texts[cut], widths[cut])
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

func (g *grid) painted(r record) []string {
	if !g.printer.colour {
		return r.texts
	}
	out := make([]string, len(r.texts))
	for i, text := range r.texts {
		out[i] = paint(text, r.tones[i])
	}
	return out
}
