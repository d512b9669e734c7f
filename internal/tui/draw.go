package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/output"
	"sbx/internal/views"
)

// The smallest screen that the dashboard fits on.
const (
	leastWidth  = 60
	leastHeight = 18
)

// View draws the screen.
func (m *Model) View() tea.View {
	v := tea.NewView(strings.Join(m.Frame(), "\n"))
	v.AltScreen, v.ReportFocus, v.WindowTitle = true, true, "sbx"
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	if m.act != nil && m.act.step == actAsking {
		v.WindowTitle = "sbx: a question"
	}
	return v
}

// Frame are the lines of the screen: as many as it is high, none wider than it is.
func (m *Model) Frame() []string {
	if m.width < leastWidth || m.height < leastHeight {
		return m.fill([]string{
			m.line(say(fmt.Sprintf("sbx needs %d x %d", leastWidth, leastHeight), output.Plain)),
			m.line(say(fmt.Sprintf("cells, this is %dx%d", m.width, m.height), output.Plain)),
			m.line(say("q quits", output.Plain)),
		}, m.height)
	}
	lines, step := slices.Concat(m.header(), m.stripLines(), []string{m.tabLine()}), m.stepLines()
	switch {
	case m.page != nil && !m.pageBeside():
		lines = append(lines, m.pageLines(step)...)
	case m.sideWidth() > 0:
		lines = append(lines, m.besideLines(step)...)
	default:
		lines = append(append(lines, m.listLines()...), m.detailLines()...)
	}
	return append(m.fill(lines, m.height-2), m.statusLine(len(step)), m.keyLine())
}

// wideScreen is the width from which a page or the detail stands beside the table.
const wideScreen = 110

// sideWidth is the width of what stands beside the table; 0 = nothing does. The tasks need the whole width.
func (m *Model) sideWidth() int {
	if m.width < wideScreen || m.tab == tabTasks {
		return 0
	}
	return m.width / 3
}

// listWidth is the width of the table.
func (m *Model) listWidth() int {
	if side := m.sideWidth(); side > 0 {
		return m.width - side - len(" | ")
	}
	return m.width
}

// pageBeside says that a page leaves the table on the screen. A page that asks, or the outcome of an act, has the whole width.
func (m *Model) pageBeside() bool {
	return m.sideWidth() > 0 && m.act == nil && (m.rail == nil || m.openStep() != stepEnd)
}

// pageWidth is the width of a page that is open.
func (m *Model) pageWidth() int {
	if m.pageBeside() {
		return m.sideWidth()
	}
	return m.width
}

// listLines are the table of the open tab.
func (m *Model) listLines() []string {
	if m.tab == tabTasks {
		return m.taskLines()
	}
	return m.tableLines()
}

// besideLines are the table, and beside it the page that is open, else the detail. Step are the lines of an open step.
func (m *Model) besideLines(step []string) []string {
	height := m.pageHeight() + 1
	right := m.sideDetail()
	if m.page != nil {
		right = m.pageLines(step)
	}
	rule := "│"
	if m.cells.ASCII {
		rule = "|"
	}
	rule = " " + m.cells.Paint(rule, output.Muted) + " "
	left, blank := m.fill(m.listLines(), height), strings.Repeat(" ", m.listWidth())
	for i, text := range m.fill(right, height) {
		if left[i] == "" { // any other line of the table is as wide as the table
			left[i] = blank
		}
		left[i] += rule + text
	}
	return left
}

// fill makes lines exactly height lines.
func (m *Model) fill(lines []string, height int) []string {
	for len(lines) < height {
		lines = append(lines, "")
	}
	return lines[:height]
}

// segment is a part of a line in one style.
type segment struct {
	text  string
	style output.Style
}

// say is a text in a tone.
func say(text string, tone output.Tone) segment { return segment{text, output.Style{Tone: tone}} }

// on is a segment on a shade.
func (s segment) on(shade output.Shade) segment { s.style.Shade = shade; return s }

// bold is a segment in bold letters.
func (s segment) bold() segment { s.style.Bold = true; return s }

// line draws segments in the width of the screen, and leaves out what has no room.
func (m *Model) line(segments ...segment) string { return m.lineIn(m.width, segments...) }

func (m *Model) lineIn(width int, segments ...segment) string {
	var b strings.Builder
	b.Grow(2 * width) // a shade doubles it about
	for _, s := range segments {
		text := m.cells.Cut(s.text, width)
		b.WriteString(m.cells.Draw(text, s.style))
		width -= output.Width(text)
	}
	return b.String()
}

// bar is a line whose segments stand on a shade from edge to edge; those behind the gap are at its right edge.
func (m *Model) bar(width int, shade output.Shade, left, right []segment) string {
	gap := width
	for _, s := range slices.Concat(left, right) {
		gap -= output.Width(s.text)
	}
	all := slices.Concat(left, []segment{say(strings.Repeat(" ", max(0, gap)), output.Plain)}, right)
	for i := range all {
		if all[i].style.Shade == output.NoShade {
			all[i] = all[i].on(shade)
		}
	}
	return m.lineIn(width, all...)
}

// topHeight is how many lines stand above the table: the header, the strip and the tabs.
const topHeight = 5

// tableHeight is for how many rows the table has room: above it are its titles, below it the status and the keys.
func (m *Model) tableHeight() int {
	return max(1, m.height-topHeight-3-m.detailHeight())
}

// commandLine is what to type for the page of a verb.
func (m *Model) commandLine(verb string, r *row) string {
	return m.program + " " + verb + " " + views.ShellWord(r.ref())
}

// statusLine is the line above the keys: what happened, what is typed into the filter, what is marked, and how far the
// verdicts are.
func (m *Model) statusLine(stepLines int) string {
	var right []segment
	switch n := m.moreBelow(stepLines); {
	case n > 0:
		right = []segment{say(fmt.Sprintf("%d more below: down ", n), output.Accent)}
	case m.page != nil && m.page.top > 0 && m.page.log == nil:
		right = []segment{say("more above: up ", output.Accent)}
	case m.page == nil || m.pageBeside():
		right = []segment{say(m.orderText()+" ", output.Muted)}
	}
	left := []segment{say(" ", output.Plain)}
	switch {
	case m.notice != "":
		return m.line(append(left, say(m.notice, output.Warn))...)
	case m.filter != "" || m.typing:
		left = append(left, m.filterSegments()...)
	}
	if r := m.rail; r != nil && !r.over && r.view.ID != "" {
		left = append(left, say("run "+r.view.ID+", yours  ", output.Accent))
	}
	if n := len(m.marked); n > 0 {
		left = append(left, say(m.markedText()+"  ", output.Accent).bold())
		if hidden := n - m.markedHere(); hidden > 0 {
			left = append(left, say(fmt.Sprintf("%d of them not shown  ", hidden), output.Warn))
		}
	}
	if open := m.steps.all[tabUnjudged]; m.sweeping && open > 0 {
		left = append(left, say(fmt.Sprintf("judging: %d to go", open), output.Muted))
	}
	return m.bar(m.width, output.NoShade, left, right)
}

// moreBelow is how many lines of the open page are below the screen. A log says so itself.
func (m *Model) moreBelow(stepLines int) int {
	switch {
	case m.page == nil || m.page.log != nil:
		return 0
	case m.showsRunbook():
		height := m.pageHeight() + 1
		return stepLines - height - max(0, min(m.page.top, stepLines-height))
	}
	return len(m.page.lines) - m.page.top - m.pageHeight()
}

// markedText counts what is marked by profile.
func (m *Model) markedText() string {
	counts := map[string]int{}
	for ref := range m.marked {
		counts[ref.Provider]++
	}
	var parts []string
	for _, f := range m.feeds {
		if n := counts[f.profile]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", f.profile, n))
		}
	}
	return fmt.Sprintf("%d marked: %s", len(m.marked), strings.Join(parts, ", "))
}

// keyLine is the last line: a question, how far an act is, or the keys.
func (m *Model) keyLine() string {
	switch {
	case m.act != nil:
		return m.actLine()
	case m.showsRunbook():
		return m.runbookLine()
	}
	return m.keysLine(m.keyHelp())
}

// keysLine draws keys and their words, which two blanks divide: "x end  q quit".
func (m *Model) keysLine(keys string) string {
	var all []segment
	for word := range strings.SplitSeq(keys, "  ") {
		key, about, has := strings.Cut(word, " ")
		all = append(all, say(" "+key, output.Accent).bold())
		if has {
			all = append(all, say(" "+about+" ", output.Muted))
		}
	}
	return m.bar(m.width, output.BarShade, all, nil)
}

// questionLine is a question with what is typed of its answer.
func (m *Model) questionLine(prompt, typed string) string {
	return m.bar(m.width, output.BarShade, []segment{say(" "+strings.TrimSpace(prompt)+" ", output.Warn).bold(), say(typed+"_", output.Accent).bold()}, nil)
}

// pageLines are the page that is open. Step are the lines of an open step.
func (m *Model) pageLines(step []string) []string {
	switch {
	case m.showsRunbook():
		return m.stepPageLines(step)
	case m.page.log != nil:
		return m.logLines()
	}
	height, width := m.pageHeight(), m.pageWidth()
	lines := []string{m.lineIn(width, say(m.page.title, output.Plain).bold())}
	for _, text := range m.page.lines[m.page.top:min(len(m.page.lines), m.page.top+height)] {
		lines = append(lines, m.cells.Cut(text, width))
	}
	return m.fill(lines, height+1)
}

// pageHeight is for how many lines of a page there is room.
func (m *Model) pageHeight() int {
	return m.tableHeight() + m.detailHeight()
}

// wrapped breaks lines of prose that are wider than the screen, with the indent that they have.
func (m *Model) wrapped(lines ...string) (all []string) {
	for _, line := range lines {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		all = append(all, output.WrapText(line, m.pageWidth(), indent+"  ")...)
	}
	return all
}

// splitLines are the lines of a text; none of an empty one.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\r", ""), "\n"), "\n")
}
