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

// wanted is which rows the filter leaves: those that have all its words, or those for which a condition holds.
type wanted struct {
	words []string // in small letters
	where selector.Where
	err   error // of the condition as it is typed now; where is the last one that was right
}

// whereWord is before a condition of `ls --where`.
const whereWord = "where "

func (m *Model) setFilter(text string) {
	m.filter, m.held = shortLine(text), false
	condition, is := strings.CutPrefix(m.filter, whereWord)
	if !is {
		m.want = wanted{words: strings.Fields(strings.ToLower(m.filter))}
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
		return len(m.want.words) == 0 || hasAll(r.searchText(now), m.want.words)
	}
	var figures *selector.Figures
	if seen, ok := m.lookOf(r, now); ok {
		figures = seen.Figures
	}
	verdict := m.want.where.Eval(selector.NewSubject(*r.Sandbox, now, *r.Verdict, figures))
	if verdict == sandbox.Unknown {
		m.unknownMatches = append(m.unknownMatches, r)
	}
	return verdict == sandbox.True
}

// hasAll reports whether a text has all words, in whatever letters.
func hasAll(text string, words []string) bool {
	text = strings.ToLower(text)
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// toLook are the rows that a look is for, by their urgency: the suspects that an open step is about, then those on the screen.
func (m *Model) toLook() []*row {
	rows := m.shown()
	if step := m.openStep(); step >= stepStuck && step <= stepUsage {
		rows = append(slices.Clone(m.steps.suspects), rows...)
	}
	if m.want.where.NeedsLook() {
		rows = append(slices.Clip(rows), m.unknownMatches...)
	}
	return rows
}

// filterSegments are the filter with what is wrong with it.
func (m *Model) filterSegments() []segment {
	text := "/" + m.filter
	if m.typing {
		text += "_"
	}
	segments := []segment{say(text+"  ", output.Accent).bold()}
	if n := len(m.unknownMatches); n > 0 {
		segments = append(segments, say(fmt.Sprintf("unknown for %d  ", n), output.Warn))
	}
	if err := m.want.err; err != nil {
		why := err.Error()
		if hint := fault.HintOf(err); hint != "" {
			why += "; " + hint
		}
		segments = append(segments, say(why+"  ", output.Bad))
	}
	return segments
}
