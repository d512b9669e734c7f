package tui

import (
	"context"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// rail is a run of the runbook. It goes on while another page is open.
type rail struct {
	view   views.Rail
	notes  []string // what its acts have done
	over   bool
	err    error
	stop   context.CancelFunc
	events chan railEvent

	key    int          // of the step whose details are shown: 1 to 7
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
	case e.asks != nil:
		if !r.over {
			r.open = e.asks
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

// showsRunbook says that the page of the runbook is open.
func (m *Model) showsRunbook() bool { return m.page != nil && m.page.rail }

// runbookKey shows a step of the runbook. The first of these keys begins a run, and 1 another one when that
// is over.
func runbookKey(key int) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		var begun tea.Cmd
		if m.rail == nil || key == 1 && m.rail.over && m.showsRunbook() {
			begun = m.startRunbook()
		}
		m.page = &page{rail: true}
		m.rail.key, m.rail.answer = key, key == 6 && m.rail.open != nil
		m.rail.typed = ""
		return begun
	}
}

// answering says that keys go into the answer to a question of the runbook.
func (m *Model) answering() bool { return m.rail != nil && m.rail.answer && m.showsRunbook() }

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

// leadOn opens the view that proves the step whose details are shown.
func (m *Model) leadOn() tea.Cmd {
	switch m.rail.key {
	case 1:
		return m.openTab(tabAll)
	case 2:
		return m.openTab(tabStuck)
	case 5:
		return m.openPageOf(verbCleanup, sandbox.Ref{})
	case 3, 4:
		m.openTab(tabStuck)
		r, ok := m.current()
		if !ok {
			m.notice = "nothing is known to be stuck"
			return nil
		}
		if m.rail.key == 3 {
			return m.openLogsOf(r.Ref())
		}
		return m.openPageOf(verbInspect, r.Ref())
	}
	return nil
}

// railLines draws the run: its steps, causes, acts, checks and calls, then the details of one of them.
func (m *Model) railLines() []string {
	head := m.railHead()
	detail, height := m.railDetail(), m.railRoom(len(head))
	top := max(0, min(m.page.top, len(detail)-height)) // it may have become shorter
	for _, text := range detail[top:min(len(detail), top+height)] {
		head = append(head, m.cells.Cut(text, m.width))
	}
	return head
}

// railRoom is how many lines of details there is room for below so many of the rail.
func (m *Model) railRoom(head int) int { return max(0, m.height-1-m.topHeight()-head) }

// mostCauses is how many causes and acts the rail names.
const mostCauses = 3

// railHead are the lines of the rail, with a rule below them. Above a question whose page has no room below them it is
// the one of the question alone.
func (m *Model) railHead() []string {
	r := m.rail
	lines := []string{m.line(segment{r.view.Title, output.Plain})}
	chosen := lines
	add := func(key int, name string, s views.RailStep) {
		line := m.railLine(key, name, s)
		lines = append(lines, line)
		if key == r.key {
			chosen = append(slices.Clip(chosen), line)
		}
	}
	for i, s := range r.view.Steps {
		add(i+1, strconv.Itoa(i+1), s)
	}
	for _, c := range r.view.Causes[:min(len(r.view.Causes), mostCauses)] {
		add(0, " ", c)
	}
	acts := lastOpen(r.view.Acts)
	for i, s := range acts {
		key, name := 0, " "
		if i == atWork(acts) {
			key, name = 6, "6"
			if r.open != nil {
				s.State, s.Tone = "asks you", output.Warn
			}
		}
		add(key, name, s)
	}
	if len(r.view.Checks) > 0 {
		add(7, "7", checksInOne(r.view.Checks))
	}
	for _, c := range r.view.Calls[:min(len(r.view.Calls), 1)] {
		add(0, " ", c)
	}
	if r.answer && m.railRoom(len(lines)+1) < len(m.railDetail()) {
		lines = chosen
	}
	return append(lines, m.cells.Paint(strings.Repeat("-", m.width), output.Muted))
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

// lastOpen are those acts that a screen has room for: what is over goes first.
func lastOpen(acts []views.RailStep) []views.RailStep {
	for len(acts) > mostCauses && acts[0].Over {
		acts = acts[1:]
	}
	return acts[:min(len(acts), mostCauses)]
}

// checksInOne counts the checks by what they say.
func checksInOne(checks []views.RailStep) views.RailStep {
	one := views.RailStep{State: "open", Tone: output.Muted, Title: "Verification"}
	var words []string
	for _, c := range checks {
		words = append(words, c.Title+": "+c.State)
		if c.Tone != output.Muted && (one.Tone == output.Muted || one.Tone == output.Good) {
			one.State, one.Tone = c.State, c.Tone
		}
	}
	one.Answer = strings.Join(words, "; ")
	return one
}

// railLine is a step with its key, its state in a word, its answer and its time.
func (m *Model) railLine(key int, name string, s views.RailStep) string {
	mark := "  "
	if key == m.rail.key {
		mark = "> "
	}
	title, took := 26, 14
	if m.width >= wideLine {
		title = 38
	}
	answer := max(0, m.width-len(mark)-2-11-title-2-took-2)
	return m.line(
		segment{mark + name + " ", output.Plain}, segment{m.cells.Fit(s.State, 11), s.Tone}, segment{m.cells.Fit(s.Title, title) + "  ", output.Plain},
		segment{m.cells.Fit(s.Answer, answer) + "  ", output.Plain}, segment{m.cells.Fit(s.Took, took), output.Muted},
	)
}

// railDetail is what the step that was chosen rests on.
func (m *Model) railDetail() []string {
	r := m.rail
	if r.answer {
		prompt := ""
		if text := strings.TrimSpace(r.open.question.Prompt); output.Width(text) >= m.width {
			prompt = text // the last line has room for a part of it
		}
		page := r.open.page
		if acts := r.view.Acts; len(page) == 0 && len(acts) > 0 {
			page = acts[atWork(acts)].Detail
		}
		return m.wrapped(append(slices.Clip(page), r.open.question.Objection, prompt)...)
	}
	var lines []string
	switch v := r.view; {
	case r.key <= len(v.Steps):
		lines = v.Steps[r.key-1].Detail
	case r.key == 6:
		if !r.over {
			lines = slices.Clone(r.notes)
		}
		for _, s := range slices.Backward(slices.Concat(v.Causes, v.Acts)) { // what is at work is near the end
			if s.State != "open" {
				lines = append(append(lines, s.Title+": "+s.State), s.Detail...)
			}
		}
		if r.over {
			lines = append(lines, r.notes...)
		}
	case r.key == 7:
		for _, s := range slices.Concat(v.Checks, v.Calls) {
			lines = append(append(lines, s.State+" "+s.Title), s.Detail...)
		}
	}
	if r.err != nil {
		lines = append([]string{"error: " + r.err.Error(), fault.HintOf(r.err)}, lines...)
	}
	return m.wrapped(lines...)
}

// runbookLine is the last line of the page of the runbook.
func (m *Model) runbookLine() string {
	r := m.rail
	switch {
	case r.answer:
		return m.line(segment{strings.TrimSpace(r.open.question.Prompt) + " " + r.typed + "_", output.Warn})
	case r.open != nil:
		return m.line(segment{"press 6 to answer: " + strings.TrimSpace(r.open.question.Prompt), output.Warn})
	case r.over:
		return m.line(segment{"it is over; 1 runs it again  2 to 7 details" + leadsTo(r.key) + "  Esc back  q quit", output.Muted})
	}
	return m.line(segment{"1 to 7 details" + leadsTo(r.key) + "  j/k scroll  Esc back  q quit", output.Muted})
}

// leadsTo names the view that proves a step; "" = its details are all there is.
func leadsTo(key int) string {
	proof, leads := map[int]string{1: "all sandboxes", 2: "the stuck", 3: "a log", 4: "its usage", 5: "the cleanups"}[key]
	if !leads {
		return ""
	}
	return "  Enter " + proof
}
