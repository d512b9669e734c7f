package tui

import (
	"fmt"
	"strings"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// tableLines are the table. Each line is as wide as it.
func (m *Model) tableLines() []string {
	w := m.columnWidths()
	titles := m.rowSegments(w, [columns]string{"NAME", "REF", "STATE", "AGE", "IDLE", "CPU", "MEM", "SPARK", "WHY"})
	for i := range titles {
		titles[i].style = output.Style{Tone: output.Muted}
	}
	lines := []string{m.lineIn(m.listWidth(), titles...)}
	shown := m.shown()
	for i, r := range shown {
		r.setAge(m.now())
		r.setIdle(m.now())
		lines = append(lines, m.rowLine(r, m.top+i == m.at, w))
	}
	if len(shown) == 0 {
		for _, text := range m.emptyText() {
			lines = append(lines, m.bar(m.listWidth(), output.NoShade, []segment{say("  "+text, output.Muted)}, nil))
		}
	}
	return m.fill(lines, m.tableHeight()+1)
}

// widths are the widths of the columns; 0 = the column is left out.
type widths struct{ name, ref, state, age, idle, cpu, memory, spark, why int }

// Widths of what is no running text, and of a line that has room for every column.
const (
	stateWidth = 12
	timeWidth  = 7
	usageWidth = 5
	wideLine   = 100
)

// columnWidths gives the columns what their texts need. A screen that is too narrow leaves out the sparkline, the idle
// time, the state and the usage, where nearly all run in this order, before it cuts a reference or a reason.
func (m *Model) columnWidths() widths {
	const leastName, leastWhy, leastRef, usualName = 10, 10, 12, 16
	var name, ref, why int
	for _, r := range m.shown() {
		name = max(name, output.Width(views.TaskAndName(*r.Sandbox)))
		ref = max(ref, output.Width(r.ref()))
		why = max(why, output.Width(m.whyText(r)))
	}
	w := widths{state: stateWidth, age: timeWidth, idle: timeWidth, cpu: usageWidth, memory: usageWidth, spark: sparkCells}
	left := m.listWidth() - 2 - stateWidth - 2*timeWidth - 2*usageWidth - sparkCells - 8*2 // without the mark and the gaps
	least := max(leastName, min(name, usualName)) + max(leastRef, ref) + max(leastWhy, why)
	spare := []*int{&w.spark, &w.idle, &w.state, &w.memory, &w.cpu}
	if m.tab == tabAll || m.tab == tabEnded {
		spare = []*int{&w.spark, &w.idle, &w.memory, &w.cpu, &w.state}
	}
	for _, column := range spare {
		if left < least {
			left += *column + 2
			*column = 0
		}
	}
	w.ref = max(leastRef, min(ref, left-leastName-leastWhy))
	left -= w.ref
	w.why = max(leastWhy, min(why, left-leastName))
	w.name = max(leastName, min(name, left-w.why))
	w.why = left - w.name
	return w
}

// The columns of the table.
const (
	columnName = iota
	columnRef
	columnState
	columnAge
	columnIdle
	columnCPU
	columnMemory
	columnSpark
	columnWhy
	columns
)

// rowSegments are the cells of a line in their widths, figures at the right of theirs, behind two cells for the marks.
func (m *Model) rowSegments(w widths, cells [columns]string) []segment {
	segments := append(make([]segment, 0, 1+columns), say("  ", output.Plain))
	for i, width := range [columns]int{w.name, w.ref, w.state, w.age, w.idle, w.cpu, w.memory, w.spark, w.why} {
		text := m.cells.Cut(cells[i], width)
		blank := strings.Repeat(" ", width-output.Width(text))
		switch {
		case width == 0:
			text = ""
		case i >= columnAge && i <= columnMemory:
			text = blank + text + "  "
		case i == columnWhy:
			text += blank
		default:
			text += blank + "  "
		}
		segments = append(segments, say(text, output.Plain))
	}
	return segments
}

func (m *Model) rowLine(r *row, current bool, w widths) string {
	cells := [columns]string{
		columnName: views.TaskAndName(*r.Sandbox), columnRef: r.ref(), columnState: string(r.State), columnAge: "-", columnIdle: "-",
		columnCPU: "-", columnMemory: "-", columnSpark: m.spark(r), columnWhy: m.whyText(r),
	}
	if r.usage != nil {
		cells[columnCPU], cells[columnMemory] = r.usage.CPUText(), r.usage.MemoryShareText()
	}
	if r.age >= 0 {
		cells[columnAge] = sandbox.FormatElapsed(r.age)
	}
	if r.idle >= 0 {
		cells[columnIdle] = sandbox.FormatElapsed(r.idle)
	}
	if w.state == 0 && cells[columnWhy] == "" && r.State != sandbox.StateRunning {
		cells[columnWhy] = string(r.State)
	}
	segments := m.rowSegments(w, cells)
	mark := []byte("  ")
	if current {
		mark[0] = '>'
	}
	if m.marked[r.Ref()] {
		mark[1] = '*'
	}
	segments[0] = say(string(mark), output.Accent).bold()
	segments[1+columnRef].style.Tone, segments[1+columnWhy].style.Tone = output.Muted, r.line(m.now()).WhyTone()
	for i := range segments {
		if r.stale {
			segments[i].style.Tone = output.Muted
		}
		if current {
			segments[i].style.Shade, segments[i].style.Bold = output.CursorShade, segments[i].style.Bold || i == 1+columnName
		}
	}
	if current { // muted letters are hard to read on a shade
		segments[1+columnRef].style.Tone = output.Plain
	}
	return m.lineIn(m.listWidth(), segments...)
}

// whyText is the reason of a row, without what the tab says of all of them.
func (m *Model) whyText(r *row) string {
	why := r.line(m.now()).Why()
	if m.tab == tabStuck {
		return strings.TrimPrefix(why, "stuck: ")
	}
	return why
}

// emptyText says why the table has no row, and what to do about it.
func (m *Model) emptyText() []string {
	for _, f := range m.feeds {
		if !f.known && f.err == nil {
			return []string{"reading ..."}
		}
	}
	switch {
	case m.filter != "":
		return []string{"nothing here matches /" + m.filter + "; esc removes the filter"}
	case m.tab == tabStuck && m.counts[tabUnjudged] > 0:
		return []string{fmt.Sprintf("nothing is known to be stuck; %d are not judged yet", m.counts[tabUnjudged])}
	case m.tab == tabStuck:
		return []string{"nothing is stuck"}
	case m.steps.all[tabAll] == 0:
		return []string{"no sandbox", "", m.program + " run -- COMMAND  starts one", m.program + " drill --live    stages stuck ones, to practise on"}
	}
	return []string{"no sandbox is in this group"}
}
