package tui

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/output"
	"sbx/internal/runs"
	"sbx/internal/views"
)

// binding is a key and what it does. The help is made of this list.
type binding struct {
	action string // of `keys:` in the configuration
	keys   []string
	name   string // of the keys, for people
	help   string
	bar    string // in the last line; "" = only in the help
	do     func(*Model) tea.Cmd
}

func move(n int) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd { m.scroll(n); return m.lookDue(m.now()) }
}

func screens(n int) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		height := m.tableHeight()
		if m.page != nil {
			height = m.pageHeight()
		}
		m.scroll(n * height)
		return m.lookDue(m.now())
	}
}

// bindings are the keys of the dashboard. None of them ends anything: x, X, s and R open a plan, which is
// carried out when its questions were answered.
func bindings() []binding {
	return []binding{
		{"up", []string{"up", "k"}, "up k", "one row up", "", move(-1)},
		{"down", []string{"down", "j"}, "down j", "one row down", "", move(1)},
		{"page_up", []string{"pgup"}, "PgUp", "one screen up", "", screens(-1)},
		{"page_down", []string{"pgdown"}, "PgDn", "one screen down", "", screens(1)},
		{"first", []string{"home", "g"}, "g", "the first row", "", move(-farAway)},
		{"last", []string{"end", "G"}, "G", "the last row; of a log, follow it again", "", (*Model).toEnd},
		{"next_tab", []string{"tab"}, "Tab", "the next tab", "Tab tabs", (*Model).nextTab},
		{"previous_tab", []string{"shift+tab"}, "Shift-Tab", "the tab before", "", (*Model).lastTab},
		{"inspect", []string{"enter"}, "Enter", "inspect the sandbox under the cursor, or show the task", "Enter open", (*Model).openPage},
		{"logs", []string{"l"}, "l", "its newest output, which is followed", "l logs", (*Model).openLogs},
		{"shell", []string{"e"}, "e", "a shell in it", "e shell", (*Model).openShell},
		{"filter", []string{"/"}, "/", "filter by a text, or by where CONDITION as of ls --where; search a log", "/ filter", (*Model).startTyping},
		{"next_hit", []string{"n"}, "n", "the next line of a log with the text", "", func(m *Model) tea.Cmd { m.jump(1); return nil }},
		{"previous_hit", []string{"N"}, "N", "the line before", "", func(m *Model) tea.Cmd { m.jump(-1); return nil }},
		{"mark", []string{"space"}, "Space", "mark the sandbox, and go on to the next", "Space mark", (*Model).mark},
		{"mark_all", []string{"a"}, "a", "mark all rows of the tab, or take their marks away", "a all", (*Model).markAll},
		{"terminate", []string{"x"}, "x", "terminate what is marked, else the sandbox under the cursor: plan, question, proof", "x end", planAct(runs.VerbTerminate)},
		{"cleanup", []string{"X"}, "X", "clean up what is stuck: plan, question, proof", "X cleanup", planAct(runs.VerbCleanup)},
		{"stop", []string{"s"}, "s", "stop the tasks of what is marked, else of the sandbox under the cursor", "", planAct(runs.VerbStop)},
		{"reconcile", []string{"R"}, "R", "reconcile records with what really runs", "", planAct(runs.VerbReconcile)},
		{"runbook_1", []string{"1"}, "1", "step 1 of the runbook of stuck sandboxes: how many are there?", "1-7 step", stepKey(stepCount)},
		{"runbook_2", []string{"2"}, "2", "step 2: which are stuck?", "", stepKey(stepStuck)},
		{"runbook_3", []string{"3"}, "3", "step 3: what do the logs say?", "", stepKey(stepLogs)},
		{"runbook_4", []string{"4"}, "4", "step 4: what do they use?", "", stepKey(stepUsage)},
		{"runbook_5", []string{"5"}, "5", "step 5: does cleanup run?", "", stepKey(stepCleanup)},
		{"runbook_6", []string{"6"}, "6", "step 6: end what is stuck; 6 again begins the run, which shows each plan and asks first", "", stepKey(stepEnd)},
		{"runbook_7", []string{"7"}, "7", "step 7: what was ended, and is it verified?", "", stepKey(stepVerify)},
		{"keep", []string{"K"}, "K", "keep what is marked, else the sandbox under the cursor, for an hour; K again does it", "K keep", (*Model).keep},
		{"runbook_8", []string{"8"}, "8", "step 8 of a sandbox-stuck of your own", "", stepKey(8)},
		{"runbook_9", []string{"9"}, "9", "step 9 of a sandbox-stuck of your own", "", stepKey(9)},
		{"sort", []string{"o"}, "o", "sort by problem, age, idle or ref", "o sort", (*Model).nextOrder},
		{"reverse", []string{"O"}, "O", "reverse the order", "", func(m *Model) tea.Cmd { m.reverse, m.held = !m.reverse, false; m.rebuild(); return nil }},
		{"pause", []string{"p"}, "p", "pause: nothing is read; in a log, it stays where it is", "p pause", (*Model).togglePause},
		{"copy_ref", []string{"y"}, "y", "copy the reference", "", (*Model).copyRef},
		{"copy_command", []string{"Y"}, "Y", "copy the command line of what is shown", "", (*Model).copyLine},
		{"help", []string{"?"}, "?", "this help", "?", (*Model).openHelp},
		{"back", []string{"esc"}, "Esc", "back; without a page: remove the filter, then the marks", "", (*Model).back},
		{"suspend", []string{"ctrl+z"}, "Ctrl-Z", "suspend; `fg` comes back", "", func(*Model) tea.Cmd { return tea.Suspend }},
		{"quit", []string{"q", "ctrl+c"}, "q Ctrl-C", "quit", "q", (*Model).quit},
	}
}

// farAway is further than any list is long.
const farAway = 1 << 30

// press does what a key means. While the filter is typed, letters go there.
func (m *Model) press(msg tea.KeyPressMsg) tea.Cmd {
	m.notice, m.held = "", true
	key := msg.String()
	if !m.means(key, "keep") {
		m.keeping = nil
	}
	if m.isTyping() && key != "ctrl+c" {
		m.typeText(key, msg.Text)
		return nil
	}
	switch {
	case m.answering():
		return m.answerRunbook(key, msg.Text)
	case m.typesAhead():
		return m.typeAhead(key, msg.Text)
	case m.act != nil && m.act.step == actAsking:
		return m.answer(key, msg.Text)
	}
	return m.pressed(key)
}

// isTyping reports whether keys go into a text: the filter, or what is searched for in a log.
func (m *Model) isTyping() bool { return m.typing || m.searching() }

// typeText takes a key, or a paste, into the text that is typed.
func (m *Model) typeText(key, text string) {
	change := func(to string) {
		if m.searching() {
			m.page.log.needle = to
		} else if m.typing {
			m.setFilter(to)
		}
	}
	have := m.filter
	if m.searching() {
		have = m.page.log.needle
	}
	switch key {
	case "enter":
		m.endTyping()
	case "esc":
		change("")
		m.endTyping()
	default:
		change(typed(have, key, text))
	}
}

func (m *Model) endTyping() {
	if m.searching() {
		m.search()
	}
	m.typing = false
}

// typed is a text after a key.
func typed(have, key, text string) string {
	r := []rune(have)
	switch {
	case key == "ctrl+u":
		return ""
	case key == "backspace" && len(r) > 0:
		return string(r[:len(r)-1])
	}
	return shortLine(have + text)
}

// mostTyped bounds what is typed, in characters: a paste may be anything.
const mostTyped = 200

// shortLine is a typed text as one line, bounded.
func shortLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, unicode.IsControl), " ")
	if r := []rune(text); len(r) > mostTyped {
		text = string(r[:mostTyped])
	}
	return text
}

// scroll moves the cursor, or the page that is open.
func (m *Model) scroll(n int) {
	if m.page != nil {
		lines := len(m.page.lines)
		if m.showsRunbook() {
			lines = len(m.stepLines())
		}
		m.page.top = max(0, min(m.page.top+n, lines-m.pageHeight()))
		return
	}
	m.moveTo(m.at + n)
}

// scrollByKey scrolls the page of a question, where letters are the answer.
func (m *Model) scrollByKey(key string) {
	m.scroll(map[string]int{"up": -1, "down": 1, "pgup": -m.pageHeight(), "pgdown": m.pageHeight()}[key])
}

func (m *Model) nextTab() tea.Cmd { return m.openTab((m.tab + 1) % tabs) }
func (m *Model) lastTab() tea.Cmd { return m.openTab((m.tab + tabs - 1) % tabs) }

func (m *Model) openTab(t tab) tea.Cmd {
	m.tab, m.page, m.at, m.top, m.held = t, nil, 0, 0, false
	m.rebuild()
	return m.lookDue(m.now())
}

func (m *Model) nextOrder() tea.Cmd {
	m.order, m.held = (m.order+1)%orders, false
	m.rebuild()
	return nil
}

func (m *Model) copyRef() tea.Cmd {
	if r, ok := m.current(); ok {
		return m.copied(views.ShellWord(r.ref()))
	}
	if t, ok := m.currentTask(); ok {
		return m.copied(t.ID)
	}
	return nil
}

// copyLine copies the command line of the page that is open, else of the one that Enter opens.
func (m *Model) copyLine() tea.Cmd {
	if m.act != nil {
		if a := m.act.plan.Act; a != nil {
			return m.copied(strings.Join(a.Line, " "))
		}
		return nil
	}
	if t, ok := m.currentTask(); ok {
		return m.copied(m.program + " " + verbTask + " " + t.ID)
	}
	r, ok := m.current()
	if !ok {
		return nil
	}
	if m.page != nil && m.page.verb != "" {
		return m.copied(m.commandLine(m.page.verb, r))
	}
	return m.copied(m.commandLine("inspect", r))
}

// copied puts a text on the clipboard of the terminal (OSC 52).
func (m *Model) copied(text string) tea.Cmd {
	m.notice = "copied: " + text
	return tea.SetClipboard(text)
}

func (m *Model) back() tea.Cmd {
	switch {
	case m.act != nil:
		m.leaveAct()
	case m.page != nil:
		m.page = nil
	case m.filter != "":
		m.setFilter("")
	default:
		m.marked = nil
	}
	return nil
}

func (m *Model) openHelp() tea.Cmd {
	m.page = &page{title: "Keys"}
	for _, b := range m.keymap() {
		m.page.lines = append(m.page.lines, "  "+m.cells.Fit(b.name, 12)+b.help)
	}
	return nil
}

// keyHelp are the keys of the last line.
func (m *Model) keyHelp() string {
	if m.typing {
		return "filter: a text, or where CONDITION; Enter keeps it, Esc removes it"
	}
	if m.page != nil && m.page.log != nil {
		return m.logKeys()
	}
	if m.page != nil {
		return "Esc back  j/k scroll  q quit"
	}
	return m.keyBar()
}

// keyBar are those keys that the last line has room for, in the order of the help.
func (m *Model) keyBar() string {
	important := []string{
		"help", "quit", "runbook_1", "terminate", "mark_all", "mark", "filter", "next_tab", "inspect", "logs", "cleanup", "sort", "shell", "keep", "pause",
	}
	bars := map[string]string{}
	for _, b := range m.keymap() {
		bars[b.action] = b.bar
	}
	left, fits := m.width-1, map[string]bool{}
	for _, action := range important {
		if left -= output.Width(bars[action]) + 2; left < -2 {
			break
		}
		fits[action] = true
	}
	var words []string
	for _, b := range m.keymap() {
		if fits[b.action] {
			words = append(words, b.bar)
		}
	}
	return strings.Join(words, "  ")
}
