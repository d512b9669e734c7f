package tui

import (
	tea "charm.land/bubbletea/v2"
)

// wheelRows is how far a notch of the wheel scrolls.
const wheelRows = 3

// The lines of the screen that take a click, beside the rows.
const (
	stripAt = 2 // and the next
	tabsAt  = 4
)

// takeMouse takes a click or the wheel. A click chooses and opens; it answers nothing and begins nothing.
func (m *Model) takeMouse(msg tea.MouseMsg) tea.Cmd {
	if m.width < leastWidth || m.height < leastHeight {
		return nil
	}
	switch at := msg.Mouse(); msg.(type) {
	case tea.MouseWheelMsg:
		m.held = true
		if at.Button == tea.MouseWheelUp {
			return move(-wheelRows)(m)
		}
		if at.Button == tea.MouseWheelDown {
			return move(wheelRows)(m)
		}
	case tea.MouseClickMsg:
		if m.act != nil && m.act.step == actOver {
			m.closeAct("")
		}
		if at.Button == tea.MouseLeft && m.act == nil && !m.answering() && !m.isTyping() {
			m.notice, m.held = "", true
			return m.click(at.X, at.Y)
		}
	}
	return nil
}

// click is a press of the left button on a cell of the screen.
func (m *Model) click(x, y int) tea.Cmd {
	switch {
	case y == stripAt || y == stripAt+1:
		if number := x/m.stepWidth() + 1; x >= 0 && number < stepsEnd && number <= len(m.steps.pages) && m.stepAt(number) != m.openStep() {
			return stepKey(number)(m)
		}
	case y == tabsAt:
		for _, s := range m.tabSpans() {
			if x >= s.from && x < s.to {
				return m.openTab(s.tab)
			}
		}
	case m.page == nil || m.pageBeside() && x < m.listWidth():
		return m.clickRow(y - topHeight - 1)
	}
	return nil
}

// clickRow puts the cursor on the nth row of the screen; on the row that has it, it is Enter.
func (m *Model) clickRow(n int) tea.Cmd {
	at := m.top + n
	switch {
	case n < 0 || n >= m.tableHeight() || at >= m.length():
		return nil
	case at == m.at && m.page == nil:
		return m.openPage()
	}
	m.page = nil
	m.moveTo(at)
	return m.lookDue(m.now())
}
