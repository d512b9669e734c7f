package tui

import (
	"context"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// rail is a run of the runbook, which its sixth step begins. It goes on while another page is open.
type rail struct {
	view   views.Rail
	notes  []string // what its acts have done
	over   bool
	err    error
	stop   context.CancelFunc
	events chan railEvent

	open   *runbookAsks // waits for an answer; nil = nothing does
	answer bool         // keys go into the answer
	typed  string
}

// runbookAsks is a question of a run.
type runbookAsks struct {
	question ops.Question
	page     []string
	reply    chan<- string
}

// railEvent is what a run of the runbook reports: a view, a question, its end, or else a note.
type railEvent struct {
	rail *rail
	view *views.Rail
	asks *runbookAsks
	note string
	over bool
	err  error // with over: what went wrong
}

// startRunbook begins a run.
func (m *Model) startRunbook() tea.Cmd {
	ctx, stop := context.WithCancel(m.ctx)
	r := &rail{stop: stop, events: make(chan railEvent, 256), view: views.Rail{Title: "reading the runbook ..."}}
	m.rail = r
	send := func(e railEvent) bool {
		select {
		case r.events <- e:
			return true
		case <-ctx.Done(): // its record has the rest
			return false
		}
	}
	watch := RunbookWatch{
		Show: func(v views.Rail) { send(railEvent{rail: r, view: &v}) },
		Note: func(line string) { send(railEvent{rail: r, note: line}) },
		Ask: func(ctx context.Context, q ops.Question, page string) (string, bool) {
			reply := make(chan string, 1)
			if !send(railEvent{rail: r, asks: &runbookAsks{q, splitLines(page), reply}}) {
				return "", false
			}
			select {
			case text := <-reply:
				return text, true
			case <-ctx.Done():
				return "", false
			}
		},
	}
	width := m.width
	m.running.Add(1)
	work := func() tea.Msg {
		defer m.running.Done()
		defer close(r.events)
		return railEvent{rail: r, over: true, err: m.source.Runbook(ctx, width, watch)}
	}
	return tea.Batch(work, r.next)
}

// next waits for what the run reports next.
func (r *rail) next() tea.Msg { //nolint:ireturn // as the library asks for
	if e, more := <-r.events; more {
		return e
	}
	return nil
}

// takeRail takes what a run reports.
func (m *Model) takeRail(e railEvent) tea.Cmd {
	r := e.rail
	switch {
	case e.view != nil:
		r.view = *e.view
		m.keepEnded(r.view.Endings)
	case e.asks != nil:
		if !r.over {
			r.open, r.answer = e.asks, m.openStep() == stepEnd
		}
	case e.over:
		r.over, r.err, r.open, r.answer = true, e.err, nil, false
		r.stop()
		if m.quitting {
			return tea.Quit
		}
		return m.readAgain()
	case e.note != "":
		r.notes = append(r.notes, e.note)
	}
	return r.next
}

// readAgain asks every profile at once: something may have changed.
func (m *Model) readAgain() tea.Cmd {
	for _, f := range m.feeds {
		f.next = m.now()
	}
	return m.pollDue(m.now())
}

// quitRunbook ends the dashboard, after the record of a run is closed.
func (m *Model) quitRunbook() tea.Cmd {
	r := m.rail
	if r == nil || r.over {
		return tea.Quit
	}
	m.quitting, m.notice = true, "quits as soon as the run of the runbook is on record"
	r.stop()
	return nil
}

// showsRunbook says that the page of a step is open.
func (m *Model) showsRunbook() bool { return m.openStep() > 0 }

// answering says that keys go into the answer to a question of the runbook.
func (m *Model) answering() bool { return m.rail != nil && m.rail.answer && m.openStep() == stepEnd }

// typesAhead says that keys wait for the next question of a run that is at work: they must not be taken for other keys.
func (m *Model) typesAhead() bool {
	return m.rail != nil && !m.rail.over && !m.rail.verifies() && m.rail.open == nil && m.openStep() == stepEnd
}

// typeAhead takes a key before its question. Enter answers nothing that was not read.
func (m *Model) typeAhead(key, text string) tea.Cmd {
	switch key {
	case "esc":
		m.rail.typed = ""
		return m.back()
	case "ctrl+c":
		return m.quitRunbook()
	case "up", "down", "pgup", "pgdown":
		m.scrollByKey(key)
	case "enter":
	default:
		m.rail.typed = typed(m.rail.typed, key, text)
	}
	return nil
}

// answerRunbook takes a key of an answer. A question that wants a word is not answered by Enter alone.
func (m *Model) answerRunbook(key, text string) tea.Cmd {
	r := m.rail
	switch key {
	case "esc":
		r.answer = false
	case "ctrl+c":
		return m.quitRunbook()
	case "up", "down", "pgup", "pgdown":
		m.scrollByKey(key)
	case "enter":
		if r.typed == "" && r.open.question.Word != "" {
			m.notice = "type the answer first; no leaves it, Esc goes back without an answer"
			return nil
		}
		r.open.reply <- r.typed
		r.open, r.answer, r.typed = nil, false, ""
	default:
		r.typed = typed(r.typed, key, text)
	}
	return nil
}

// leadOn opens the view that proves the step that is open, or begins the run of the sixth.
func (m *Model) leadOn() tea.Cmd {
	switch step := m.openStep(); step {
	case stepCount:
		return m.openTab(tabAll)
	case stepStuck:
		return m.openTab(tabStuck)
	case stepCleanup:
		return m.openPageOf(verbCleanup, sandbox.Ref{})
	case stepLogs, stepUsage:
		m.openTab(tabStuck)
		r, ok := m.current()
		if !ok {
			m.notice = "nothing is known to be stuck"
			return nil
		}
		if step == stepLogs {
			return m.openLogsOf(r.Ref())
		}
		return m.openPageOf(verbInspect, r.Ref())
	case stepEnd:
		return m.openStepPage(stepEnd)
	}
	return nil
}

// leadsTo names what Enter opens on the page of a step; "" = nothing.
func leadsTo(step int) string {
	return map[int]string{
		stepCount: "  Enter all sandboxes", stepStuck: "  Enter the stuck", stepLogs: "  Enter a log", stepUsage: "  Enter its usage", stepCleanup: "  Enter the cleanups",
	}[step]
}

// runFacts are what the run does and did: its acts with the detail of the newest, then what it has found.
func (m *Model) runFacts() []fact {
	r := m.rail
	facts := []fact{{text: r.view.Title, bold: true}}
	facts = append(facts, m.runErrorFacts()...)
	newest := -1
	for i, s := range r.view.Acts {
		now := !r.over && i == atWork(r.view.Acts)
		if now && r.open != nil {
			s.State = "asks you"
		}
		one := m.runFact(s)
		if one.bold = now; now {
			one.tone = output.Accent
		}
		if facts = append(facts, one); s.Over && len(s.Detail) > 0 {
			newest = i
		} else if now {
			newest = -1 // what it does is among the notes
		}
	}
	if r.verifies() {
		facts = append(facts, fact{text: "  " + m.cells.Fit("at work", 11) + "the targets are read until they hold", tone: output.Accent, bold: true})
	}
	if len(r.view.Causes)+len(r.view.Acts) == 0 && !r.over {
		facts = append(facts, fact{text: "it counts, judges and names the causes first ...", tone: output.Muted})
	}
	if newest >= 0 {
		facts = append(facts, fact{})
		for _, text := range r.view.Acts[newest].Detail {
			facts = append(facts, fact{text: "  " + text})
		}
	}
	for _, note := range r.notes {
		facts = append(facts, fact{text: "  " + note, tone: output.Muted})
	}
	if len(r.view.Causes) > 0 {
		facts = append(facts, fact{})
	}
	for _, c := range r.view.Causes {
		facts = append(facts, m.runFact(c))
	}
	return facts
}

// runErrorFacts are why a run failed. Where all that it was to end is gone, what is left are targets of the fleet.
func (m *Model) runErrorFacts() []fact {
	r := m.rail
	if r.err == nil {
		return nil
	}
	gone, open := m.provedEnds()
	text, tone := "error: "+r.err.Error(), output.Bad
	if gone > 0 && open == 0 && m.steps.all[tabStuck] == 0 && fault.KindOf(r.err) == fault.KindFound {
		text, tone = "apart from that, of the whole fleet: "+r.err.Error(), output.Warn
	}
	return []fact{{text: text, tone: tone}, {text: fault.HintOf(r.err), tone: output.Muted}}
}

// verifies says that the acts of the run are over, and its targets are read.
func (r *rail) verifies() bool {
	n := len(r.view.Acts)
	return n > 0 && !r.over && r.view.Acts[n-1].Over
}

// runFact is a cause or an act with its state, its answer and its time.
func (m *Model) runFact(s views.RailStep) fact { return fact{text: m.runLine(s), tone: s.Tone} }

// runLine is the same as a line.
func (m *Model) runLine(s views.RailStep) string {
	answer, _, _ := strings.Cut(s.Answer, "\n")
	text := "  " + m.cells.Fit(s.State, 11) + strings.TrimSpace(s.Title+"  "+answer)
	return strings.TrimRight(m.cells.Cut(text, max(0, m.pageWidth()-output.Width(s.Took)-2))+"  "+s.Took, " ")
}

// atWork is the first act that is not over, else the last one.
func atWork(acts []views.RailStep) int {
	for i, s := range acts {
		if !s.Over {
			return i
		}
	}
	return len(acts) - 1
}

// questionFacts are what a question of the run is about.
func (m *Model) questionFacts() (facts []fact) {
	r := m.rail
	page := r.open.page
	if acts := r.view.Acts; len(page) == 0 && len(acts) > 0 {
		page = append([]string{m.runLine(acts[atWork(acts)])}, acts[atWork(acts)].Detail...)
	}
	for _, text := range page {
		facts = append(facts, fact{text: text})
	}
	if text := r.open.question.Objection; text != "" {
		facts = append(facts, fact{text: text, tone: output.Warn})
	}
	if text := strings.TrimSpace(r.open.question.Prompt); output.Width(text) >= m.width-4 {
		facts = append(facts, fact{text: text}) // the last line has room for a part of it
	}
	return facts
}

// runbookLine is the last line of the page of a step.
func (m *Model) runbookLine() string {
	r, step := m.rail, m.openStep()
	switch {
	case m.answering():
		return m.questionLine(r.open.question.Prompt, r.typed)
	case m.typesAhead() && r.typed != "":
		return m.questionLine("waits for its question:", r.typed)
	case m.typesAhead():
		return m.keysLine("Esc leaves the page: the run goes on")
	case r != nil && r.open != nil:
		return m.keysLine(strconv.Itoa(m.numberOf(stepEnd)) + " answers: " + strings.TrimSpace(r.open.question.Prompt))
	case step == stepEnd && (r == nil || r.over) && m.steps.all[tabStuck] > 0:
		return m.keysLine(strconv.Itoa(m.numberOf(stepEnd)) + " or Enter begins: it shows each plan and asks first  Esc back  q quit")
	}
	return m.keysLine("1-7 step" + leadsTo(step) + "  j/k scroll  Esc back  ? help  q quit")
}
