package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/views"
)

// What the detail of the row under the cursor takes, a rule line included, and from which height of the screen on it
// takes more.
const (
	fewDetails  = 4
	manyDetails = 8
	highScreen  = 30
)

func (m *Model) detailHeight() int {
	if m.height >= highScreen {
		return manyDetails
	}
	return fewDetails
}

// detail is a line about the row under the cursor.
type detail struct {
	name string
	text string // "" = there is nothing to say
	rank int    // those of the highest are left out first
}

// detailLines are what is known of the row under the cursor, and what to type.
func (m *Model) detailLines() []string {
	lines := []string{m.cells.Paint(strings.Repeat("-", m.width), output.Muted)}
	r, ok := m.current()
	if !ok {
		return lines
	}
	row := r.line(m.now())
	lines = append(lines, m.line(segment{r.ref() + "  ", output.Plain}, segment{row.Why(), row.WhyTone()}))
	for _, d := range m.chooseDetails(m.details(r), m.detailHeight()-len(lines)) {
		lines = append(lines, m.line(segment{m.cells.Fit(d.name, 8), output.Muted}, segment{d.text, output.Plain}))
	}
	return lines
}

// details are all there are, in their order.
func (m *Model) details(r *row) []detail {
	all := []detail{{"why", r.Verdict.Say(), 0}}
	if seen, ok := m.lookOf(r, m.now()); ok {
		if len(seen.Causes) > 0 && seen.Causes[0].Cause == r.Verdict.Cause {
			all = append(all, detail{"not", views.WhyNotSecond(seen.Causes), 1})
		}
		if r.usage != nil {
			all = append(all, detail{"usage", r.usage.Words(), 3})
		}
		for i, line := range seen.Output {
			all = append(all, detail{"output", line.Text, 2 + 2*(len(seen.Output)-1-i)})
		}
	}
	return append(all, detail{"type", r.line(m.now()).NextLine(m.program), 0})
}

// lookOf is the newest look at a sandbox, if it is new enough to be shown.
func (m *Model) lookOf(r *row, now time.Time) (*look.LiveLook, bool) {
	seen, ok := m.looked[r.Ref()]
	return seen, ok && now.Sub(seen.At).Abs() < lookKeeps
}

// chooseDetails leaves out what says nothing, and the least important of what there is no room for.
func (m *Model) chooseDetails(all []detail, room int) []detail {
	all = slices.DeleteFunc(all, func(d detail) bool { return strings.TrimSpace(d.text) == "" })
	for len(all) > room {
		last := slices.MaxFunc(all, func(a, b detail) int { return cmp.Compare(a.rank, b.rank) })
		at := slices.Index(all, last)
		all = slices.Delete(all, at, at+1)
	}
	return all
}
