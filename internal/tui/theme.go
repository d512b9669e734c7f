package tui

import (
	tea "charm.land/bubbletea/v2"

	"sbx/internal/output"
)

// askBackground asks the terminal whether it is dark or light. One that does not answer keeps its own colours.
func (m *Model) askBackground() tea.Cmd {
	if m.cells.Plain {
		return nil
	}
	return tea.RequestBackgroundColor
}

func (m *Model) takeBackground(msg tea.BackgroundColorMsg) {
	m.cells.Background = output.LightBackground
	if msg.IsDark() {
		m.cells.Background = output.DarkBackground
	}
}
