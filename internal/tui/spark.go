package tui

import (
	"iter"
	"slices"

	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
)

// sparkCells is how many figures of a sandbox are kept: one look each, a cell each.
const sparkCells = 8

// oneCore is the processor figure of a sandbox that uses a whole core.
const oneCore = 100

// spark draws the figures of a row, in proportion to a whole core, or to the highest of them where that is more.
func (m *Model) spark(r *row) string {
	figures := m.sparks[r.Ref()]
	if len(figures) == 0 {
		return ""
	}
	return m.cells.Spark(figures, max(oneCore, slices.Max(figures)))
}

// sparks are the newest processor figures of the sandboxes that were looked at, oldest first, in percent of a core.
type sparks map[sandbox.Ref][]float64

// add keeps the figures of looks.
func (s sparks) add(looks []look.LiveLook) {
	for _, l := range looks {
		if l.Usage == nil || l.Usage.Trend.CPUPercent == nil {
			continue
		}
		ref := l.Sandbox.Ref()
		all := append(s[ref], *l.Usage.Trend.CPUPercent)
		s[ref] = all[max(0, len(all)-sparkCells):]
	}
}

// dropGone drops the figures of sandboxes that are no row any more.
func (s sparks) dropGone(rows iter.Seq[*row]) {
	if len(s) == 0 {
		return
	}
	gone := map[sandbox.Ref]bool{}
	for ref := range s {
		gone[ref] = true
	}
	for r := range rows {
		delete(gone, r.Ref())
	}
	for ref := range gone {
		delete(s, ref)
	}
}
