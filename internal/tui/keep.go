package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// keepsFor is how long a key keeps a sandbox from being ended.
const keepsFor = time.Hour

// keep asks for a second press with what it would do, and does it then: it ends nothing, but others see its label.
func (m *Model) keep() tea.Cmd {
	var refs []sandbox.Ref
	var words []string
	for _, r := range m.chosen() {
		refs, words = append(refs, r.Ref()), append(words, views.ShellWord(r.ref()))
	}
	if len(refs) == 0 || m.page != nil && !m.pageBeside() {
		return nil
	}
	if !slices.Equal(refs, m.keeping) {
		m.keeping = refs
		m.notice = fmt.Sprintf("%s again: %s keep %s --for %s", m.keyOf("keep"), m.program, strings.Join(words, " "), sandbox.FormatDuration(keepsFor))
		return nil
	}
	m.keeping, m.marked = nil, nil
	m.notice = "writing labels ..."
	return func() tea.Msg { return keptMsg(m.source.Keep(m.ctx, refs, keepsFor)) }
}

// keptMsg says what came of a keep, a line each.
type keptMsg []string

// takeKept shows one line, or a page of more.
func (m *Model) takeKept(lines keptMsg) tea.Cmd {
	switch {
	case len(lines) == 1 || m.page != nil || m.act != nil:
		m.notice = strings.Join(lines, "; ")
	default:
		m.notice, m.page = "", &page{title: "keep", lines: lines}
	}
	return m.readAgain()
}
