package tui

import (
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/fleet"
)

// openStep is the step whose page is open; 0 = none is.
func (m *Model) openStep() int {
	if m.page == nil {
		return 0
	}
	return m.page.step
}

// stepKey opens the page of the step with a number.
func stepKey(number int) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		if step := m.stepAt(number); step > 0 {
			return m.openStepPage(step)
		}
		m.notice = fmt.Sprintf("the runbook has %d steps", len(m.steps.pages))
		return nil
	}
}

// openStepPage opens the page of a step. That of the one that ends, while it is open, begins the run that does it.
func (m *Model) openStepPage(step int) tea.Cmd {
	again := m.openStep() == step
	m.page = &page{step: step}
	switch r := m.rail; {
	case step != stepEnd:
	case r != nil && r.open != nil:
		r.answer, r.typed = true, ""
	case again && (r == nil || r.over) && m.steps.all[tabStuck] == 0:
		m.notice = "nothing is known to be stuck, so no run was begun"
	case again && (r == nil || r.over):
		return m.startRunbook()
	}
	return m.stepsDue(m.now())
}

// stepsDue answers the open step again, and reads the record of cleanup, where it is time.
func (m *Model) stepsDue(now time.Time) tea.Cmd {
	s := &m.steps
	var all []tea.Cmd
	if !s.asking && m.wantsSteps() && (s.at.IsZero() || now.Sub(s.at).Abs() >= stepsAgain) {
		s.asking = true
		judged := m.judged(now)
		all = append(all, func() tea.Msg {
			pages, err := m.source.Investigation(m.ctx, judged)
			return stepsMsg{pages, err, m.now()}
		})
	}
	if !s.cleanupAsking && !m.paused && due(now, s.cleanupNext) {
		s.cleanupAsking = true
		all = append(all, func() tea.Msg { return cleanupMsg(m.source.Cleanup(m.ctx)) })
	}
	return tea.Batch(all...)
}

// wantsSteps says that a page is open that is answered, or that nobody knows yet which steps the runbook has.
func (m *Model) wantsSteps() bool {
	step := m.openStep()
	return step > 0 && step != stepEnd && step != stepVerify || m.steps.at.IsZero() && slices.ContainsFunc(m.feeds, func(f *feed) bool { return f.known })
}

// judged is every sandbox with its newest verdict.
func (m *Model) judged(now time.Time) []fleet.Judged {
	all := make([]fleet.Judged, 0, m.steps.all[tabAll])
	for _, f := range m.feeds {
		for i := range f.round.Rows {
			one := &f.round.Rows[i]
			if seen, ok := m.looked[one.Sandbox.Ref()]; ok && now.Sub(seen.At).Abs() < lookKeeps {
				all = append(all, seen.Judged)
				continue
			}
			all = append(all, one.Judged())
		}
	}
	return all
}

func (m *Model) takeSteps(msg stepsMsg) {
	s := &m.steps
	s.asking, s.err, s.at = false, msg.err, msg.at
	if msg.err == nil {
		s.pages = msg.pages
	}
}

func (m *Model) takeCleanup(msg cleanupMsg, now time.Time) {
	s := &m.steps
	s.cleanupAsking, s.cleanup, s.cleanupNext = false, CleanupWord(msg), now.Add(cleanupAgain)
}
