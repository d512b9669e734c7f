package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/output"
	"sbx/internal/sandbox"
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
	if m.act != nil && m.act.step == actAsking {
		v.WindowTitle = "sbx: a question"
	}
	return v
}

// Frame are the lines of the screen: as many as it is high, each as wide as it is.
func (m *Model) Frame() []string {
	if m.width < leastWidth || m.height < leastHeight {
		return m.fill([]string{
			m.line(segment{fmt.Sprintf("sbx needs %d x %d", leastWidth, leastHeight), output.Plain}),
			m.line(segment{fmt.Sprintf("cells, this is %dx%d", m.width, m.height), output.Plain}),
			m.line(segment{"q quits", output.Plain}),
		}, m.height)
	}
	lines := slices.Concat(m.header(), m.stripLines(), []string{m.tabLine()})
	switch {
	case m.showsRunbook():
		lines = append(lines, m.stepPageLines()...)
	case m.page != nil:
		lines = append(lines, m.pageLines()...)
	case m.tab == tabTasks:
		lines = append(append(lines, m.taskLines()...), m.taskDetail()...)
	default:
		lines = append(lines, m.tableLines()...)
		lines = append(lines, m.detailLines()...)
	}
	return append(m.fill(lines, m.height-2), m.filterLine(), m.keyLine())
}

// fill makes lines exactly height lines.
func (m *Model) fill(lines []string, height int) []string {
	for len(lines) < height {
		lines = append(lines, "")
	}
	return lines[:height]
}

// segment is a part of a line in one tone.
type segment struct {
	text string
	tone output.Tone
}

// line draws segments in the width of the screen, and leaves out what has no room.
func (m *Model) line(segments ...segment) string {
	var b strings.Builder
	left := m.width
	for _, s := range segments {
		text := m.cells.Cut(s.text, left)
		b.WriteString(m.cells.Paint(text, s.tone))
		left -= output.Width(text)
	}
	return b.String()
}

// header is a line for the screen, and one for its profiles.
func (m *Model) header() []string { return []string{m.screenLine(), m.profilesLine()} }

// screenLine says what is read, how old it is, what was done here last, and the time.
func (m *Model) screenLine() string {
	what := fmt.Sprintf("%d profiles", len(m.feeds))
	if len(m.feeds) == 1 {
		what = m.feeds[0].profile
	}
	left := []segment{{"sbx", output.Good}, {"  " + what, output.Plain}}
	if age, known := m.readAge(); known {
		left = append(left, segment{"  read " + sandbox.FormatDuration(age) + " ago", output.Muted})
	}
	if m.paused {
		left = append(left, segment{"  PAUSED", output.Warn})
	}
	right := []segment{{m.now().UTC().Format("15:04:05Z"), output.Muted}}
	if gone, open := m.provedEnds(); gone+open > 0 {
		done := segment{fmt.Sprintf("last: %d ended, verified  ", gone), output.Good}
		if open > 0 {
			done = segment{fmt.Sprintf("last: %d ended, %d not verified  ", gone, open), output.Bad}
		}
		right = append([]segment{done}, right...)
	}
	gap := m.width
	for _, s := range slices.Concat(left, right) {
		gap -= output.Width(s.text)
	}
	return m.line(append(append(left, segment{strings.Repeat(" ", max(2, gap)), output.Plain}), right...)...)
}

// readAge is how long ago the profile was read whose list is the oldest.
func (m *Model) readAge() (age time.Duration, known bool) {
	for _, f := range m.feeds {
		if f.known {
			age, known = max(age, m.now().Sub(f.round.At)), true
		}
	}
	return age, known
}

// profilesLine has a share of the line for each profile; those that are in trouble come first.
func (m *Model) profilesLine() string {
	const least = 16
	feeds := slices.Clone(m.feeds)
	slices.SortStableFunc(feeds, func(a, b *feed) int { return count(b.err != nil) - count(a.err != nil) })
	most, left := min(len(feeds), m.width/least), m.width
	if most < len(feeds) {
		left -= len("and 99 more")
		most = left / least
	}
	var segments []segment
	for i, f := range feeds[:most] {
		share := left / (most - i)
		width := 0
		for _, s := range m.feedSegments(f, share-2) {
			segments = append(segments, s)
			width += output.Width(s.text)
		}
		segments = append(segments, segment{"  ", output.Plain})
		left -= width + 2
	}
	if more := len(feeds) - most; more > 0 {
		segments = append(segments, segment{fmt.Sprintf("and %d more", more), output.Muted})
	}
	return m.line(segments...)
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// feedSegments are a profile and what there is room to say of it.
func (m *Model) feedSegments(f *feed, room int) []segment {
	name := segment{m.cells.Cut(f.profile, max(8, room-4)) + " ", output.Plain}
	left := room - output.Width(name.text)
	switch {
	case f.known && room < wideFeed:
		return append([]segment{name}, m.fitFigures(m.shortFigures(f), left)...)
	case f.known:
		return append([]segment{name}, m.fitFigures(m.feedFigures(f), left)...)
	case f.err != nil:
		return []segment{name, {m.cells.Cut("not read: "+f.err.Error(), left), output.Bad}}
	}
	if room < wideFeed {
		return []segment{name, {"-", output.Muted}}
	}
	return []segment{name, {"reading ...", output.Muted}}
}

// tabLine are the tabs with their counts; the open one stands in brackets.
func (m *Model) tabLine() string {
	var segments []segment
	for t := range tabs {
		text := " " + t.title() + " " + m.countText(t) + " "
		if t == m.tab {
			text = "[" + t.title() + " " + m.countText(t) + "]"
		}
		tone := output.Plain
		if t == tabStuck && m.counts[t] > 0 {
			tone = output.Bad
		}
		if m.width >= wideLine {
			text += " "
		}
		segments = append(segments, segment{text, tone})
	}
	state := ""
	if n := len(m.marked); n > 0 {
		state += fmt.Sprintf(" %d marked", n)
		if hidden := n - m.markedHere(); hidden > 0 {
			state += fmt.Sprintf(", %d not shown", hidden)
		}
	}
	if m.sweeping && m.counts[tabUnjudged] > 0 {
		state += " judging more,"
	}
	return m.line(append(segments, segment{state + " " + m.orderText(), output.Muted})...)
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

// topHeight is how many lines stand above the table: the header, the strip and the tabs.
const topHeight = 5

// tableHeight is for how many rows the table has room: above it are its titles, below it the filter and the keys.
func (m *Model) tableHeight() int {
	return max(1, m.height-topHeight-3-m.detailHeight())
}

func (m *Model) tableLines() []string {
	w := m.columnWidths()
	lines := []string{m.cells.Paint(m.tableLine("  ", w, "NAME", "REF", "STATE", "AGE", "IDLE", "CPU", "MEM", "SPARK")+m.cells.Fit("WHY", w.why), output.Muted)}
	shown := m.shown()
	for i, r := range shown {
		r.setAge(m.now())
		r.setIdle(m.now())
		lines = append(lines, m.rowLine(r, m.top+i == m.at, w))
	}
	if len(shown) == 0 {
		lines = append(lines, m.line(segment{"  " + m.emptyText(), output.Muted}))
	}
	return m.fill(lines, m.tableHeight()+1)
}

// widths are those of the columns; 0 = the column is left out.
type widths struct{ name, ref, state, age, idle, cpu, memory, spark, why int }

// Widths of what is no running text, and of a line that has room for every column.
const (
	stateWidth = 12
	timeWidth  = 7
	usageWidth = 5
	wideLine   = 100
)

// columnWidths gives the columns what their texts need. A screen that is too narrow leaves out the sparkline, the idle
// time and the usage, in this order, before it cuts a reference or a reason.
func (m *Model) columnWidths() widths {
	const leastName, leastWhy, leastRef = 10, 10, 12
	var name, ref, why int
	for _, r := range m.shown() {
		name = max(name, output.Width(views.TaskAndName(*r.Sandbox)))
		ref = max(ref, output.Width(r.ref()))
		why = max(why, output.Width(r.line(m.now()).Why()))
	}
	w := widths{state: stateWidth, age: timeWidth, idle: timeWidth, cpu: usageWidth, memory: usageWidth, spark: sparkCells}
	left := m.width - 2 - stateWidth - 2*timeWidth - 2*usageWidth - sparkCells - 8*2 // without the mark and the gaps
	least := max(leastName, min(name, leastRef)) + max(leastRef, ref) + max(leastWhy, why)
	for _, column := range []*int{&w.spark, &w.idle, &w.memory, &w.cpu} {
		if *column > 0 && left < least {
			left += *column + 2
			*column = 0
		}
	}
	w.ref = max(leastRef, min(ref, left/2))
	left -= w.ref
	w.why = max(leastWhy, min(why, left-leastName))
	w.name = max(leastName, min(name, left-w.why))
	w.why = left - w.name
	return w
}

// tableLine are the cells of a line up to the reason: name, reference, state, age, idle, processor, memory and
// sparkline.
func (m *Model) tableLine(mark string, w widths, cells ...string) string {
	var b strings.Builder
	b.WriteString(mark)
	for i, width := range []int{w.name, w.ref, w.state, w.age, w.idle, w.cpu, w.memory, w.spark} {
		if width > 0 {
			b.WriteString(m.cells.Fit(cells[i], width) + "  ")
		}
	}
	return b.String()
}

func (m *Model) rowLine(r *row, current bool, w widths) string {
	mark := []byte("  ")
	if current {
		mark[0] = '>'
	}
	if m.marked[r.Ref()] {
		mark[1] = '*'
	}
	line := r.line(m.now())
	tone, whyTone := output.Plain, line.WhyTone()
	if r.stale {
		tone, whyTone = output.Muted, output.Muted
	}
	age, idle, cpu, memory := "-", "-", "-", "-"
	if r.usage != nil {
		cpu, memory = r.usage.CPUText(), r.usage.MemoryShareText()
	}
	if r.age >= 0 {
		age = sandbox.FormatElapsed(r.age)
	}
	if r.idle >= 0 {
		idle = sandbox.FormatElapsed(r.idle)
	}
	text := m.tableLine(string(mark), w, views.TaskAndName(*r.Sandbox), r.ref(), string(r.State), age, idle, cpu, memory, m.spark(r))
	return m.cells.Paint(text, tone) + m.cells.Paint(m.cells.Fit(line.Why(), w.why), whyTone)
}

// emptyText says why the table has no row.
func (m *Model) emptyText() string {
	for _, f := range m.feeds {
		if !f.known && f.err == nil {
			return "reading ..."
		}
	}
	switch {
	case m.filter != "":
		return "nothing here matches /" + m.filter + "; esc removes the filter"
	case m.tab == tabStuck && m.counts[tabUnjudged] > 0:
		return fmt.Sprintf("nothing is known to be stuck; %d are not judged yet", m.counts[tabUnjudged])
	case m.tab == tabStuck:
		return "nothing is stuck"
	}
	return "no sandbox"
}

// commandLine is what to type for the page of a verb.
func (m *Model) commandLine(verb string, r *row) string {
	return m.program + " " + verb + " " + views.ShellWord(r.ref())
}

// keyLine is the last line: what happened, or the keys.
func (m *Model) keyLine() string {
	asking := m.act != nil && m.act.step == actAsking
	switch {
	case m.notice != "" && !asking:
		return m.line(segment{m.notice, output.Warn})
	case m.act != nil:
		return m.actLine()
	case m.showsRunbook():
		return m.runbookLine()
	}
	return m.line(segment{m.keyHelp(), output.Muted})
}

func (m *Model) pageLines() []string {
	if m.page.log != nil {
		return m.logLines()
	}
	height := m.pageHeight()
	lines := []string{m.line(segment{m.page.title, output.Plain})}
	for _, text := range m.page.lines[m.page.top:min(len(m.page.lines), m.page.top+height)] {
		lines = append(lines, m.cells.Fit(text, m.width))
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
		all = append(all, output.WrapText(line, m.width, indent+"  ")...)
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
