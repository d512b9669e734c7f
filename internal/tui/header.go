package tui

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// header is a line for the screen, and one for its profiles.
func (m *Model) header() []string { return []string{m.screenLine(), m.profilesLine()} }

// screenLine says what is read and by whom, how old it is, what was done here last, and the time.
func (m *Model) screenLine() string {
	what := fmt.Sprintf("%d profiles", len(m.feeds))
	if len(m.feeds) == 1 {
		what = m.feeds[0].profile
	}
	left := []segment{say(" sbx ", output.Accent).on(output.FullShade).bold(), say(" "+what, output.Plain).bold()}
	if m.operator != "" && m.width >= fullWidth {
		left = append(left, say("  "+m.operator, output.Muted))
	}
	if age, known := m.readAge(); known {
		left = append(left, say("  read "+sandbox.FormatDuration(age)+" ago", output.Muted))
	}
	if m.paused {
		left = append(left, say("  PAUSED", output.Warn).bold())
	}
	right := []segment{say(m.now().UTC().Format("15:04:05Z "), output.Muted)}
	if gone, open := m.provedEnds(); gone+open > 0 {
		done := say(fmt.Sprintf("last: %d ended, verified  ", gone), output.Good)
		if open > 0 {
			done = say(fmt.Sprintf("last: %d ended, %d not verified  ", gone, open), output.Bad)
		}
		right = append([]segment{done}, right...)
	}
	return m.bar(m.width, output.BarShade, left, right)
}

// fullWidth is the width of a usual terminal, for which a line leaves nothing out.
const fullWidth = 80

// readAge is how long ago the profile was read whose list is the oldest.
func (m *Model) readAge() (age time.Duration, known bool) {
	for _, f := range m.feeds {
		if f.known {
			age, known = max(age, m.now().Sub(f.round.At)), true
		}
	}
	return age, known
}

// profilesLine are the profiles with what there is to say of them. Where it has no room for all of them, those that are in
// trouble come first; where there is more room, it says why they are.
func (m *Model) profilesLine() string {
	feeds := slices.Clone(m.feeds)
	if m.profilesWidth(feeds) > m.width {
		slices.SortStableFunc(feeds, func(a, b *feed) int { return count(b.err != nil) - count(a.err != nil) })
	}
	for shown := len(feeds); shown > 0; shown-- {
		more := ""
		if left := len(feeds) - shown; left > 0 {
			more = fmt.Sprintf("and %d more", left)
		}
		if room := m.width - m.profilesWidth(feeds[:shown]) - len(more); room >= 0 || shown == 1 {
			return m.line(append(m.profiles(feeds[:shown], room), say(more, output.Muted))...)
		}
	}
	return ""
}

// profiles are profiles on a line, with room for so many cells of reasons.
func (m *Model) profiles(feeds []*feed, room int) (segments []segment) {
	for _, f := range feeds {
		segments = append(segments, say(f.profile+" ", output.Plain).bold())
		for i, s := range m.shortFigures(f) {
			if i > 0 {
				segments = append(segments, say(", ", output.Muted))
			}
			segments = append(segments, say(s.text, s.tone))
		}
		if f.err != nil && room >= leastCut {
			text := m.cells.Cut(": "+f.err.Error(), room)
			room -= output.Width(text)
			segments = append(segments, say(text, output.Bad))
		}
		segments = append(segments, say("  ", output.Plain))
	}
	return segments
}

// profilesWidth is how wide profiles are without reasons.
func (m *Model) profilesWidth(feeds []*feed) (width int) {
	for _, s := range m.profiles(feeds, 0) {
		width += output.Width(s.text)
	}
	return width
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// tabLine are the tabs with their counts; the open one stands in brackets, or on a shade.
func (m *Model) tabLine() string {
	var segments []segment
	for _, s := range m.tabSpans() {
		tone := m.tabTone(s.tab)
		switch {
		case s.tab != m.tab:
			segments = append(segments, say(" "+s.tab.title()+" ", output.Muted), say(m.countText(s.tab)+" ", tone))
		case m.cells.Plain:
			segments = append(segments, say("["+s.text+"]", output.Plain))
		case tone == output.Plain || tone == output.Muted:
			segments = append(segments, say(" "+s.text+" ", output.Accent).on(output.FullShade).bold())
		default:
			segments = append(segments, say(" "+s.text+" ", tone).on(output.FullShade).bold())
		}
		segments = append(segments, say(m.tabGap(), output.Plain))
	}
	return m.line(segments...)
}

// tabSpan is where a tab stands on its line.
type tabSpan struct {
	tab      tab
	text     string
	from, to int // cells, the end excluded
}

// tabSpans are the places of the tabs.
func (m *Model) tabSpans() (all []tabSpan) {
	at := 0
	for t := range tabs {
		text := t.title() + " " + m.countText(t)
		width := output.Width(text) + 2
		all = append(all, tabSpan{t, text, at, at + width})
		at += width + len(m.tabGap())
	}
	return all
}

func (m *Model) tabGap() string {
	if m.width >= wideLine {
		return " "
	}
	return ""
}

// tabTone is the tone of a tab's count.
func (m *Model) tabTone(t tab) output.Tone {
	switch {
	case m.counts[t] == 0:
		return output.Muted
	case t == tabStuck:
		return output.Bad
	case t == tabRisk:
		return output.Warn
	case t == tabEnded && len(m.gone) > 0:
		return output.Good
	}
	return output.Plain
}

// countText is how many rows a tab has; "-" = they were not read.
func (m *Model) countText(t tab) string {
	if t == tabTasks && !m.tasks.known {
		return "-"
	}
	return strconv.Itoa(m.counts[t])
}

func (m *Model) orderText() string {
	text := "by " + m.order.title()
	switch {
	case m.tab == tabTasks:
		return "newest first"
	case m.reverse:
		return text + ", reversed"
	}
	return text
}
