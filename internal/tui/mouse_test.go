package tui

import (
	"context"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/ops"
	"sbx/internal/sandbox"
)

func click(m *Model, x, y int) tea.Cmd {
	_, cmd := m.Update(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
	return cmd
}

// TestClicksChoose a step, a tab and a row; on the row that has the cursor a click is Enter.
func TestClicksChoose(t *testing.T) {
	t.Parallel()
	for _, width := range []int{60, 80, 120, 200} {
		m := board(t, newScene(), width, 40)
		m.cells.Plain = true
		for step := stepCount; step < stepsEnd; step++ {
			at := strings.Index(m.Frame()[stripAt], stepWord(step))
			click(m, at, stripAt+step%2)
			assert.Equal(t, step, m.openStep(), "width %d", width)
		}
		assert.Nil(t, m.rail)
		for wanted := range tabs {
			for _, s := range m.tabSpans() {
				if s.to > width { // it has no room on the line
					m.tab = wanted
				} else if s.tab == wanted {
					require.Contains(t, m.Frame()[tabsAt][s.from:s.to], wanted.title())
					click(m, s.from+1, tabsAt)
				}
			}
			assert.Equal(t, wanted, m.tab)
		}
		m.openTab(tabAll)
		click(m, 5, topHeight+1+2)
		assert.Equal(t, 2, m.at)
		require.Nil(t, m.page)
		click(m, 5, topHeight+1+2)
		require.NotNil(t, m.page)
		assert.Equal(t, verbInspect, m.page.verb)
		for _, nowhere := range [][2]int{{0, 0}, {width - 1, 39}, {width * 2, 3}, {-1, -1}} {
			before := m.page
			click(m, nowhere[0], nowhere[1])
			assert.Equal(t, before, m.page)
		}
		if m.pageBeside() {
			click(m, 5, topHeight+1)
			assert.Nil(t, m.page, "a row is chosen beside the page")
			assert.Equal(t, 0, m.at)
		}
	}
}

func stepWord(step int) string {
	return map[int]string{stepCount: "1", stepStuck: "2", stepLogs: "3", stepUsage: "4", stepCleanup: "5", stepEnd: "6", stepVerify: "7"}[step]
}

// TestTheWheelScrolls the table, and the page of a question.
func TestTheWheelScrolls(t *testing.T) {
	t.Parallel()
	m := board(t, newScene(), 80, 24)
	m.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	assert.Equal(t, 3, m.at)
	m.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	assert.Equal(t, 0, m.at)
	assert.True(t, m.held)
	m.mouse = true
	assert.Equal(t, tea.MouseModeCellMotion, m.View().MouseMode)
}

// TestAClickAnswersNothing: while a plan is asked, while an act is at work, and while a run asks, clicks choose nothing.
func TestAClickAnswersNothing(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.plan = planOf(1, "1")
	m := board(t, s, 120, 40)
	everywhere := func() {
		for y := range 40 {
			for x := 0; x < 120; x += 7 {
				click(m, x, y)
			}
		}
	}
	open(t, m, "x")
	before := m.act
	everywhere()
	assert.Same(t, before, m.act)
	assert.Equal(t, actAsking, m.act.step)
	m.act.step = actRunning
	everywhere()
	assert.Same(t, before, m.act)
	m.act, m.page = nil, nil

	s.runbook = func(ctx context.Context, watch RunbookWatch) error {
		_, answered := watch.Ask(ctx, ops.Question{Word: "1", Prompt: "type 1: "}, "the plan")
		assert.False(t, answered)
		return nil
	}
	p := &player{m, make(chan tea.Msg, 100)}
	press(m, "6")
	p.run(press(m, "6")[0])
	p.run(p.until(t, func() bool { return m.rail.open != nil }))
	everywhere()
	assert.True(t, m.answering())
	assert.Contains(t, screen(m), "the plan")
	m.rail.stop()
	p.until(t, func() bool { return m.rail.over })
}

// TestTypedAheadWaits: what is typed before a question of a run opens is never another key, and answers only after Enter
// was pressed below the question.
func TestTypedAheadWaits(t *testing.T) {
	t.Parallel()
	s := newScene()
	ask := make(chan struct{})
	var answer string
	s.runbook = func(ctx context.Context, watch RunbookWatch) error {
		<-ask
		answer, _ = watch.Ask(ctx, ops.Question{Word: "12", Prompt: "type 12: "}, "the plan")
		return nil
	}
	m := board(t, s, 80, 24)
	p := &player{m, make(chan tea.Msg, 100)}
	press(m, "6")
	p.run(press(m, "6")[0])
	press(m, "s", "k", "i", "p", "enter", "1", "2")
	assert.False(t, m.paused)
	assert.Equal(t, stepEnd, m.openStep())
	assert.Contains(t, screen(m), "waits for its question: skip12_")
	close(ask)
	p.run(p.until(t, func() bool { return m.rail.open != nil }))
	assert.Contains(t, screen(m), "type 12: skip12_")
	press(m, "backspace", "backspace", "backspace", "backspace", "backspace", "backspace", "1", "2", "enter")
	p.until(t, func() bool { return m.rail.over })
	assert.Equal(t, "12", answer)
}

// TestAPlanStays until it is answered or left: after a wrong answer, another size, and rows that change.
func TestAPlanStays(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.plan = planOf(26, "26")
	s.plan.Page = "Would terminate: 26\n" + strings.Repeat("  e2b/x  busy loop  a processor is busy and nothing at all comes out of it, for a long time already\n", 26)
	m := board(t, s, 120, 40)
	m.cells.Plain = true
	open(t, m, "x")
	press(m, "2", "enter")
	assert.Contains(t, m.notice, `the answer was "2", not "26"`)
	r := s.Round(t.Context(), "e2b")
	r.Rows = r.Rows[:1]
	m.Update(newRound(r, nil))
	r.Err = context.DeadlineExceeded
	m.Update(newRound(r, nil))
	for _, size := range [][2]int{{60, 18}, {200, 60}, {20, 5}, {80, 24}} {
		m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		frame := screen(m)
		if size[0] >= leastWidth {
			assert.Contains(t, frame, "plan of terminate, read at 12:00:00Z")
			assert.Contains(t, frame, "busy loop")
			assert.Contains(t, frame, "type 26 to terminate these: _")
		}
	}
	assert.Empty(t, s.done)
	last := press(m, "2", "6", "enter")[2]
	carryOut(t, m, last)
	assert.Equal(t, []string{"terminate"}, s.done)
}

// TestEndedCountsWhatWasEndedHere, although no list has it any more.
func TestEndedCountsWhatWasEndedHere(t *testing.T) {
	t.Parallel()
	s := newScene()
	m := board(t, s, 80, 24)
	gone := s.rounds["e2b"].Rows[0].Sandbox.Ref()
	m.keepEnded([]sandbox.Ending{{Ref: gone, Outcome: sandbox.OutcomeVerified}, {Ref: sandbox.Ref{Provider: "e2b", ID: "open"}, Outcome: sandbox.OutcomeAccepted}})
	m.rebuild()
	assert.Equal(t, 0, m.counts[tabEnded], "a list has it still: what it says is shown")
	r := s.Round(t.Context(), "e2b")
	r.Rows = r.Rows[1:]
	m.Update(newRound(r, nil))
	assert.Equal(t, 1, m.counts[tabEnded])
	assert.Equal(t, 0, m.counts[tabStuck])
	m.openTab(tabEnded)
	frame := screen(m)
	assert.Contains(t, frame, gone.String())
	assert.Contains(t, frame, "terminated")
	assert.Contains(t, frame, "ended from this screen, verified")
	m.cells.Plain = true
	assert.Equal(t, "3", strings.TrimSpace(m.strip()[0].figure), "it is not counted as running")
}

// TestTheFilterFindsLabelsAndSeveralWords in any order.
func TestTheFilterFindsLabelsAndSeveralWords(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.rounds["e2b"].Rows[2].Sandbox.Labels = map[string]string{"team": "Search"}
	m := board(t, s, 80, 24)
	for filter, want := range map[string]int{"search": 1, "team=search": 1, "worker e2b": 1, "e2b worker": 1, "e2b tests": 0, "  ": 4, "running": 4} {
		m.setFilter(filter)
		assert.Len(t, m.rows, want, "%q", filter)
	}
}

// TestKeepAsksForASecondPress with the line that does the same, and says what came of it.
func TestKeepAsksForASecondPress(t *testing.T) {
	t.Parallel()
	m := board(t, newScene(), 120, 40)
	assert.Nil(t, press(m, "K")[0])
	assert.Equal(t, "K again: sbx keep e2b/i0a4k2m9p1r7t3v5x8z2b --for 1h", m.notice)
	press(m, "j")
	assert.Nil(t, press(m, "K")[0], "it is another sandbox")
	cmd := press(m, "K")[0]
	require.NotNil(t, cmd)
	m.Update(cmd())
	assert.Equal(t, "e2b/i7c2e4g6i8k0m1n3p5r7t kept for 1h0m0s", m.notice)
	press(m, "space", "space", "K")
	assert.Contains(t, m.notice, " again: sbx keep e2b/")
	m.Update(press(m, "K")[0]())
	require.NotNil(t, m.page)
	assert.Len(t, m.page.lines, 2)
	assert.Empty(t, m.marked)
}
