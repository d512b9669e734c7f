package tui

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

// planOf is a plan that ends so many sandboxes, with a question for each word.
func planOf(n int, words ...string) Plan {
	p := Plan{Act: &ops.Act{Verb: "terminate", Line: []string{"sbx", "terminate", "e2b/x"}}, Page: "Would terminate: " + strconv.Itoa(n)}
	for range n {
		p.Act.Targets = append(p.Act.Targets, ops.PlannedEnd{Ref: sandbox.Ref{Provider: "e2b", ID: "x"}})
	}
	for _, w := range words {
		p.Questions = append(p.Questions, ops.Question{Word: w, Prompt: "type " + w + " to terminate these: "})
	}
	return p
}

// open presses a key that plans, and has the plan read.
func open(t *testing.T, m *Model, key string) {
	t.Helper()
	cmds := press(m, key)
	require.NotNil(t, cmds[0], m.notice)
	m.Update(cmds[0]())
}

// carryOut runs what the last answer began, to its end.
func carryOut(t *testing.T, m *Model, cmd tea.Cmd) tea.Cmd {
	t.Helper()
	require.NotNil(t, cmd)
	both, ok := cmd().(tea.BatchMsg)
	require.True(t, ok)
	done := make(chan tea.Msg, 1)
	go func() { done <- both[0]() }()
	for next := both[1]; next != nil; {
		msg := next()
		if msg == nil {
			break
		}
		_, next = m.Update(msg)
	}
	_, last := m.Update(<-done)
	return last
}

func screen(m *Model) string {
	m.cells.Plain = true
	return strings.Join(m.Frame(), "\n")
}

// TestAllOfATabAreMarked: those that the filter leaves, and a second time none of them.
func TestAllOfATabAreMarked(t *testing.T) {
	t.Parallel()
	m := board(t, newScene(), 100, 30)
	rows := len(m.rows)
	press(m, "a")
	assert.Len(t, m.marked, rows)
	m.setFilter("i0")
	require.Less(t, len(m.rows), rows)
	press(m, "a")
	assert.Len(t, m.marked, rows-len(m.rows), "the others keep their marks")
	press(m, "a")
	assert.Len(t, m.marked, rows)
	press(m, "?", "a")
	assert.Len(t, m.marked, rows, "a page is open")
}

// TestAnActIsPlannedAskedAndProved: the marked ones, the count typed, each end shown.
func TestAnActIsPlannedAskedAndProved(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.plan = planOf(2, "2", "e2b")
	s.do = func(_ context.Context, report func(string)) ops.ActResult {
		report("verified e2b/x in 1.2s")
		return ops.ActResult{Endings: []sandbox.Ending{{Outcome: sandbox.OutcomeVerified}, {Outcome: sandbox.OutcomeFailed}}, Err: errors.New("1 failed")}
	}
	m := board(t, s, 100, 30)
	press(m, "space", "space")
	assert.Contains(t, screen(m), "2 marked: e2b 2 ")
	m.setFilter("i0")
	assert.Contains(t, screen(m), "1 of them not shown")
	m.setFilter("")
	open(t, m, "x")
	require.Len(t, s.boxes, 2)
	assert.Contains(t, screen(m), "type 2 to terminate these: _")
	press(m, "Y")
	assert.Contains(t, screen(m), "type 2 to terminate these: Y_", "letters are the answer")
	press(m, "backspace", "2", "enter")
	assert.Contains(t, screen(m), "type e2b to terminate these: _")
	assert.Empty(t, s.done)
	press(m, "e", "2")
	last := press(m, "b", "enter")[1]
	carryOut(t, m, last)
	assert.Equal(t, []string{"terminate"}, s.done)
	frame := screen(m)
	assert.Contains(t, frame, "verified e2b/x in 1.2s")
	assert.Contains(t, frame, "error: 1 failed")
	assert.Empty(t, m.marked)
	press(m, "Y")
	assert.Equal(t, "copied: sbx terminate e2b/x", m.notice)
	press(m, "?")
	assert.Equal(t, "Keys", m.page.title, "a key of another page leaves that of an act which is over")
	assert.Nil(t, m.act)
}

// TestAnotherAnswerDoesNothing, and neither does leaving the question.
func TestAnotherAnswerDoesNothing(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{{"enter"}, {"y", "enter"}, {"3", "enter"}, {"2", "esc"}, {"2", " ", "enter"}, {"2", "ctrl+c"}} {
		s := newScene()
		s.plan = planOf(2, "2")
		m := board(t, s, 100, 30)
		open(t, m, "x")
		press(m, keys...)
		assert.Empty(t, s.done, "%q", keys)
	}
}

// TestStaleRowsRefuse to be ended until they are read again.
func TestStaleRowsRefuse(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.plan = planOf(1, "1")
	m := board(t, s, 100, 30)
	m.Update(newRound(look.LiveRound{Profile: "e2b", Err: errors.New("no answer")}, nil))
	for _, key := range []string{"x", "s"} {
		assert.Nil(t, press(m, key)[0])
		assert.Contains(t, m.notice, "is stale")
	}
	m.Update(newRound(s.Round(t.Context(), "e2b"), nil))
	open(t, m, "x")
	assert.NotNil(t, m.act)
}

// TestARefusedPlanHasNoQuestion, and says which flag allows it.
func TestARefusedPlanHasNoQuestion(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.plan = planOf(1)
	s.plan.Act.Refused = fault.New(fault.KindRefused, "more than max_delete").WithHint("repeat with --max-delete 3")
	m := board(t, s, 100, 30)
	open(t, m, "X")
	assert.Empty(t, s.boxes, "a cleanup chooses itself")
	frame := screen(m)
	assert.Contains(t, frame, "refused: more than max_delete")
	assert.Contains(t, frame, "--max-delete 3")
	press(m, "1", "enter")
	assert.Empty(t, s.done)
}

// TestEscStopsWhatWasNotSent, and q waits for the outcome of what was.
func TestEscStopsWhatWasNotSent(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"esc", "q", "ctrl+c"} {
		s := newScene()
		s.plan = planOf(1, "1")
		var cause error
		s.do = func(ctx context.Context, _ func(string)) ops.ActResult {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ops.ActResult{Err: cause}
		}
		m := board(t, s, 100, 30)
		open(t, m, "x")
		begun := press(m, "1", "enter")[1]
		left := press(m, "x", "tab", "l", key)[3]
		assert.Nil(t, left, "it does not quit before the outcome is known")
		require.NotNil(t, m.act)
		last := carryOut(t, m, begun)
		assert.Equal(t, fault.KindCanceled, fault.KindOf(cause))
		if key != "esc" {
			require.NotNil(t, last)
			assert.IsType(t, tea.QuitMsg{}, last())
		}
	}
}

// waitingQuestion puts a question to the run of the runbook, if there is one, and gives the channel of its answer.
func waitingQuestion(m *Model) <-chan string {
	if m.rail == nil {
		return nil
	}
	reply := make(chan string, 1)
	if m.rail.open == nil {
		m.takeRail(railEvent{rail: m.rail, asks: &runbookAsks{question: ops.Question{Word: "12"}}})
	}
	m.rail.open.reply = reply
	return reply
}

// TestNoKeysEndAnythingUnasked: whatever is typed, an act begins only right behind its word and Enter.
func TestNoKeysEndAnythingUnasked(t *testing.T) {
	t.Parallel()
	sequences := 300
	if tiertest.IsLong("100,000 sequences of keys") {
		sequences = 100_000
	}
	keys := []string{"j", "k", "g", "G", "o", "O", "p", "y", "Y", "?", "/", "l", "x", "X", "s", "R", "1", "2", "6", "7", "space", "enter", "enter", "esc", "tab", "down", "pgdown", "backspace", "q", "ctrl+c", "e", "b"}
	for seed := range uint64(sequences) {
		rng := rand.New(rand.NewPCG(seed, 2))
		s := newScene()
		s.plan = planOf(2, "12")
		m := board(t, s, 80, 24)
		for range 40 {
			key := keys[rng.IntN(len(keys))]
			if rng.IntN(3) == 0 && m.act != nil && m.act.step == actAsking {
				press(m, "1", "2")
				key = "enter"
			}
			asks, answer := waitingQuestion(m), ""
			switch {
			case m.answering():
				answer = m.rail.typed
			case m.act != nil && m.act.step == actAsking:
				answer = m.act.typed
			}
			cmd := press(m, key)[0]
			select {
			case text := <-asks:
				require.Equal(t, "enter", key, "seed %d", seed)
				require.Equal(t, answer, text, "seed %d", seed)
				require.NotEmpty(t, text, "seed %d", seed)
			default:
			}
			switch a := m.act; {
			case a == nil:
			case a.step == actPlanning:
				m.Update(cmd())
			case a.step == actRunning && cmd != nil:
				require.Equal(t, "12 enter", answer+" "+key, "seed %d", seed)
				carryOut(t, m, cmd)
			}
			require.Len(t, m.Frame(), m.height)
			if rng.IntN(10) == 0 {
				m.Update(newRound(s.Round(t.Context(), "e2b"), nil))
			}
		}
	}
}
