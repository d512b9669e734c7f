package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
)

// wanted is which rows the filter leaves: those that have a text, or those for which a condition holds.
type wanted struct {
	text  string // in small letters
	where selector.Where
	err   error // of the condition as it is typed now; where is the last one that was right
}

// whereWord is before a condition of `ls --where`.
const whereWord = "where "

func (m *Model) setFilter(text string) {
	m.filter, m.held = shortLine(text), false
	condition, is := strings.CutPrefix(m.filter, whereWord)
	if !is {
		m.want = wanted{text: strings.ToLower(m.filter)}
	} else if where, err := selector.ParseWhere(condition); err != nil {
		m.want = wanted{where: m.want.where, err: err}
	} else {
		m.want = wanted{where: where}
	}
	m.rebuild()
}

// wants reports whether the filter leaves a row. One that it cannot decide is not left, and is looked at if
// that can tell.
func (m *Model) wants(r *row, now time.Time) bool {
	if m.want.where.IsZero() {
		return m.want.text == "" || strings.Contains(strings.ToLower(r.searchText(now)), m.want.text)
	}
	var look *selector.Look
	if seen, ok := m.lookOf(r, now); ok {
		look = seen.Look
	}
	verdict := m.want.where.Eval(selector.NewSubject(*r.Sandbox, now, *r.Verdict, look))
	if verdict == sandbox.Unknown {
		m.undecided = append(m.undecided, r)
	}
	return verdict == sandbox.True
}

// toLook are the rows that a look is for, by their urgency.
func (m *Model) toLook() []*row {
	rows := m.shown()
	if m.want.where.NeedsLook() {
		rows = append(slices.Clip(rows), m.undecided...)
	}
	return rows
}

// filterLine is the filter under the tabs, with what is wrong with it; "" without one.
func (m *Model) filterLine() string {
	if m.filter == "" && !m.typing {
		return ""
	}
	text := " /" + m.filter
	if m.typing {
		text += "_"
	}
	segments := []segment{{text, output.Plain}}
	if n := len(m.undecided); n > 0 {
		segments = append(segments, segment{fmt.Sprintf("  unknown for %d", n), output.Warn})
	}
	if err := m.want.err; err != nil {
		why := err.Error()
		if hint := fault.HintOf(err); hint != "" {
			why += "; " + hint
		}
		segments = append(segments, segment{"  " + why, output.Bad})
	}
	return m.line(segments...)
}
