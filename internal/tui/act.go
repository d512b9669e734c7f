package tui

import (
	"context"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// act is one act from its plan to its verified end. Its page is open as long as it is.
type act struct {
	verb  string
	boxes []sandbox.Sandbox
	plan  Plan
	step  actStep

	asked int    // so many questions are answered
	typed string // of the answer to the next one

	stop  context.CancelFunc // of what runs
	lines chan string        // what it reports
}

// actStep is how far an act is.
type actStep int

// The steps of an act. From actOver on nothing more is sent.
const (
	actPlanning actStep = iota
	actAsking
	actRunning
	actStopping // what was sent is awaited
	actOver
)

// The messages of an act. One of an act that was left is for nobody.
type (
	planMsg struct {
		act  *act
		plan Plan
		err  error
	}
	reportMsg struct {
		act  *act
		line string
	}
	doneMsg struct {
		act    *act
		result ops.ActResult
	}
)

// runs says that something was sent whose outcome is not known yet.
func (a *act) runs() bool { return a != nil && (a.step == actRunning || a.step == actStopping) }

// planAct opens the plan of a verb for the marked sandboxes, else for the one under the cursor.
func planAct(verb string) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		if m.act.runs() {
			m.notice = "one act at a time: Esc stops what has not been sent"
			return nil
		}
		rows, chosen := m.chosen(), verb == runs.VerbTerminate || verb == runs.VerbStop
		if !chosen {
			rows = nil
		}
		a := &act{verb: verb}
		if t, ok := m.currentTask(); ok && verb == runs.VerbStop {
			a.boxes = []sandbox.Sandbox{{TaskID: t.ID}}
		}
		if chosen && len(rows)+len(a.boxes) == 0 {
			return nil
		}
		for _, r := range rows {
			if r.stale {
				m.notice = r.ref() + " is stale: its provider does not answer, so nothing is planned for it"
				return nil
			}
			a.boxes = append(a.boxes, *r.Sandbox)
		}
		m.act = a
		m.page = &page{title: "plan of " + verb, lines: []string{"reading what it would do ..."}}
		width := m.width
		return func() tea.Msg {
			p, err := m.source.Plan(m.ctx, verb, a.boxes, width)
			return planMsg{a, p, err}
		}
	}
}

// chosen are the marked rows, else the one under the cursor.
func (m *Model) chosen() []*row {
	if len(m.marked) == 0 {
		if r, ok := m.current(); ok {
			return []*row{r}
		}
		return nil
	}
	var rows []*row
	for r := range m.all() {
		if m.marked[r.Ref()] {
			rows = append(rows, r)
		}
	}
	m.sortRows(rows)
	return rows
}

// showPlan shows a plan, and asks where it can be done.
func (m *Model) showPlan(msg planMsg) {
	a := msg.act
	if m.act != a {
		return
	}
	a.plan, a.step, m.page.title = msg.plan, actOver, a.verb+": nothing was done"
	if msg.err == nil && msg.plan.Act != nil {
		msg.err = msg.plan.Act.Failed
	}
	switch {
	case msg.err != nil:
		m.page.lines = []string{"nothing was done: " + msg.err.Error(), fault.HintOf(msg.err)}
	case len(msg.plan.Questions) == 0:
		m.page.lines = splitLines(msg.plan.Page)
		if refused := msg.plan.Act.Refused; refused != nil {
			m.page.lines = append(m.page.lines, "", "refused: "+refused.Error(), fault.HintOf(refused))
		}
		if a.verb == runs.VerbCleanup && msg.plan.Act.Objection != "" {
			m.page.lines = append(m.page.lines, "  To terminate them once: mark them (a marks all of the tab Stuck), then x.")
		}
	default:
		a.step, m.page.lines = actAsking, splitLines(msg.plan.Page)
		m.page.title = "plan of " + a.verb + ", read at " + m.now().UTC().Format("15:04:05Z") + ": it stays until it is answered or left"
	}
	m.page.unwrapped = m.page.lines
	m.page.lines = m.wrapped(m.page.lines...)
	m.page.top = max(0, len(m.page.lines)-m.pageHeight()) // what would end is at the end, above the question
}

// answer takes a key while a question is open.
func (m *Model) answer(key, text string) tea.Cmd {
	a := m.act
	switch key {
	case "esc":
		m.closeAct("nothing was done")
	case "ctrl+c":
		return m.quitRunbook()
	case "enter":
		return m.accept()
	case "up", "down", "pgup", "pgdown":
		m.scrollByKey(key)
	default:
		a.typed = typed(a.typed, key, text)
	}
	return nil
}

// accept compares an answer with its word. The last one begins the act; a wrong one leaves the plan and its question.
func (m *Model) accept() tea.Cmd {
	a := m.act
	answer := a.typed
	a.typed = ""
	if answer == "no" || answer == "n" {
		m.closeAct("nothing was done")
		return nil
	}
	if word := a.plan.Questions[a.asked].Word; answer != word {
		m.notice = fmt.Sprintf("the answer was %q, not %q: nothing was done; type it again, or Esc leaves", answer, word)
		return nil
	}
	if a.asked++; a.asked < len(a.plan.Questions) {
		return nil
	}
	return m.begin()
}

// begin carries the act out. What is asked is frozen in its plan.
func (m *Model) begin() tea.Cmd {
	a := m.act
	var named []string
	for _, q := range a.plan.Questions {
		if slices.Contains(a.plan.Act.Profiles(), q.Word) {
			named = append(named, q.Word)
		}
	}
	ctx, stop := context.WithCancel(m.ctx)
	a.step, a.stop, a.lines = actRunning, stop, make(chan string, 256)
	m.page.lines, m.page.unwrapped, m.page.top, m.page.title = nil, nil, 0, a.verb+": at work"
	m.running.Add(1)
	do := func() tea.Msg {
		defer m.running.Done()
		defer close(a.lines)
		return doneMsg{a, m.source.Do(ctx, a.plan, named, func(line string) {
			select {
			case a.lines <- line:
			case <-m.ctx.Done(): // nobody looks any more
			}
		})}
	}
	return tea.Batch(do, a.nextLine)
}

// nextLine waits for what the act reports next.
func (a *act) nextLine() tea.Msg { //nolint:ireturn // as the library asks for
	if line, more := <-a.lines; more {
		return reportMsg{a, line}
	}
	return nil
}

// report shows a line of the act.
func (m *Model) report(msg reportMsg) tea.Cmd {
	if msg.line != "" {
		m.page.unwrapped = append(m.page.unwrapped, msg.line)
		m.page.lines = append(m.page.lines, m.wrapped(msg.line)...)
		m.page.top = max(0, len(m.page.lines)-m.pageHeight())
	}
	return msg.act.nextLine
}

// finish shows what came of the act, and has the profiles read that it was about.
func (m *Model) finish(msg doneMsg) tea.Cmd {
	a := msg.act
	a.step, m.marked, m.page.title = actOver, nil, a.verb+": done"
	m.steps.endings = append(m.steps.endings, msg.result.Endings...)
	m.keepEnded(msg.result.Endings)
	a.stop()
	if len(msg.result.Endings) > 0 {
		m.page.unwrapped = append(m.page.unwrapped, "", ops.CountsText(fleet.Count(msg.result.Endings)))
	}
	if err := msg.result.Err; err != nil {
		m.page.unwrapped = append(m.page.unwrapped, "error: "+err.Error(), fault.HintOf(err))
	}
	m.page.lines = m.wrapped(m.page.unwrapped...)
	m.page.top = max(0, len(m.page.lines)-m.pageHeight())
	if m.quitting {
		return m.quitRunbook()
	}
	return m.readAgain()
}

// leaveAct leaves an act whose plan is shown or whose end is known, and stops one that runs.
func (m *Model) leaveAct() {
	if m.act.runs() {
		m.stopAct()
		return
	}
	m.closeAct("")
}

// ofPage says that a binding means something on the page of an act.
func (b binding) ofPage() bool {
	switch b.action {
	case "back", "quit", "up", "down", "page_up", "page_down", "first", "last", "copy_command":
		return true
	}
	return false
}

// stopAct keeps the act from sending more.
func (m *Model) stopAct() {
	if m.act.step == actRunning {
		m.act.step = actStopping
		m.act.stop()
	}
}

func (m *Model) closeAct(notice string) {
	m.act, m.page, m.notice = nil, nil, notice
}

// quit ends the dashboard, after what was sent is known.
func (m *Model) quit() tea.Cmd {
	if !m.act.runs() {
		return m.quitRunbook()
	}
	m.stopAct()
	m.quitting, m.notice = true, "quits as soon as the outcome of what was sent is known"
	return nil
}

// mark marks the row under the cursor, or takes the mark away, and goes on to the next.
func (m *Model) mark() tea.Cmd {
	r, ok := m.current()
	if !ok || m.page != nil {
		return nil
	}
	if m.marked == nil {
		m.marked = map[sandbox.Ref]bool{}
	}
	if m.marked[r.Ref()] {
		delete(m.marked, r.Ref())
	} else {
		m.marked[r.Ref()] = true
	}
	m.scroll(1)
	return m.lookDue(m.now())
}

// markAll marks all rows of the open tab that the filter leaves, or takes their marks away.
func (m *Model) markAll() tea.Cmd {
	if m.page != nil {
		return nil
	}
	all := m.markedHere() < len(m.rows)
	if m.marked == nil {
		m.marked = map[sandbox.Ref]bool{}
	}
	for _, r := range m.rows {
		if delete(m.marked, r.Ref()); all {
			m.marked[r.Ref()] = true
		}
	}
	return nil
}

// markedHere is how many of the marked are rows of the open tab.
func (m *Model) markedHere() (n int) {
	for _, r := range m.rows {
		if m.marked[r.Ref()] {
			n++
		}
	}
	return n
}

// keepMarks drops the marks of what is gone.
func (m *Model) keepMarks() {
	if len(m.marked) == 0 {
		return
	}
	kept := map[sandbox.Ref]bool{}
	for r := range m.all() {
		if ref := r.Ref(); m.marked[ref] {
			kept[ref] = true
		}
	}
	m.marked = kept
}

// actLine is the line below the page of an act: its question, or how far it is.
func (m *Model) actLine() string {
	switch a := m.act; a.step {
	case actPlanning:
		return m.keysLine("Esc back")
	case actAsking:
		return m.questionLine(a.plan.Questions[a.asked].Prompt, a.typed)
	case actRunning:
		return m.keysLine("Esc stops what has not been sent")
	case actStopping:
		return m.bar(m.width, output.BarShade, []segment{say(" stopping; the outcome of what was sent is awaited", output.Warn)}, nil)
	case actOver:
	}
	return m.keysLine("Esc back  j/k scroll  Y copy the command line  q quit")
}
