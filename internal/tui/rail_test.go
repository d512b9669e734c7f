package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/testkit/tiertest"
	"sbx/internal/views"
)

// diagnosed is a rail whose diagnosis is over.
func diagnosed() views.Rail {
	return views.Rail{
		Title: "sandbox-stuck: Sandbox stuck",
		Causes: []views.RailStep{
			{State: "probable", Tone: output.Bad, Title: "infinite loop", Answer: "12 sandboxes; no memory leak: memory is stable", Took: "score 0.82"},
		},
		Acts:   []views.RailStep{{State: "open", Title: "Terminate the looping sandboxes"}},
		Checks: []views.RailStep{{State: "holds", Tone: output.Good, Title: "Active"}, {State: "missed", Tone: output.Bad, Title: "Ages"}},
	}
}

// player runs commands beside a model, as Bubble Tea does.
type player struct {
	m      *Model
	events chan tea.Msg
}

func (p *player) run(c tea.Cmd) {
	if c == nil {
		return
	}
	go func() {
		if msg := c(); msg != nil {
			p.events <- msg
		}
	}()
}

// until takes messages until something is so, and returns the last command, which is not run.
func (p *player) until(t *testing.T, so func() bool) (last tea.Cmd) {
	t.Helper()
	limit := time.After(tiertest.Limit(t))
	for !so() {
		p.run(last)
		select {
		case msg := <-p.events:
			if both, ok := msg.(tea.BatchMsg); ok {
				for _, c := range both {
					p.run(c)
				}
				continue
			}
			_, last = p.m.Update(msg)
		case <-limit:
			t.Fatal("it did not become so")
		}
	}
	return last
}

// TestTheRunbookIsARail: keys 1 to 7 show what the run says, and its question is answered behind 6 alone.
func TestTheRunbookIsARail(t *testing.T) {
	t.Parallel()
	s := newScene()
	var answer string
	s.runbook = func(ctx context.Context, watch RunbookWatch) error {
		watch.Show(diagnosed())
		watch.Note("") // a blank line is no end
		var answered bool
		answer, answered = watch.Ask(ctx, ops.Question{Word: "12", Prompt: "type 12 to terminate these 12: ", Objection: "many"}, "the twelve\nsandboxes")
		assert.True(t, answered)
		watch.Note("verified e2b/x in 1s")
		return fault.New(fault.KindFound, "the verification misses 1").WithHint("look at it")
	}
	m := board(t, s, 120, 40)
	p := &player{m, make(chan tea.Msg, 100)}
	press(m, "1", "7", "6")
	assert.Nil(t, m.rail, "nothing begins before 6 is pressed again")
	assert.Contains(t, screen(m), "6 or Enter begins")
	p.run(press(m, "6")[0])
	p.run(p.until(t, func() bool { return m.rail.open != nil }))
	assert.Contains(t, screen(m), "the twelve", "its question is open where its page is")
	press(m, "esc", "1")
	assert.Contains(t, screen(m), "6 answers: type 12")
	assert.Contains(t, screen(m), "asks you")
	press(m, "1", "2", "enter")
	assert.Equal(t, tabStuck, m.tab, "2 leads to the stuck ones")
	assert.Empty(t, answer, "keys of steps are no answer")
	press(m, "7")
	assert.Contains(t, screen(m), "missed     Ages")
	press(m, "6", "esc")
	frame := screen(m)
	assert.Contains(t, frame, "no memory leak: memory is")
	assert.Contains(t, frame, "score 0.82")
	press(m, "6")
	m.height = leastHeight
	assert.Contains(t, screen(m), "the twelve\n")
	m.height = 40
	press(m, "enter")
	assert.Contains(t, m.notice, "type the answer first")
	press(m, "1", "2", "esc")
	assert.NotNil(t, m.rail.open, "going back is no answer")
	press(m, "6", "1", "2", "enter")
	p.until(t, func() bool { return m.rail.over && len(m.rail.notes) == 1 })
	assert.Equal(t, "12", answer)
	frame = screen(m)
	assert.Contains(t, frame, "error: the verification misses 1")
	assert.Contains(t, frame, "verified e2b/x in 1s")
	press(m, "esc")
	assert.Nil(t, m.page)
	press(m, "6")
	assert.True(t, m.rail.over, "its result is shown")
	press(m, "6")
	assert.False(t, m.rail.over, "and then it is run again")
}

// TestQuittingClosesTheRecordOfARun before the dashboard ends.
func TestQuittingClosesTheRecordOfARun(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"q", "ctrl+c"} {
		s := newScene()
		s.runbook = func(ctx context.Context, watch RunbookWatch) error {
			_, answered := watch.Ask(ctx, ops.Question{Word: "1"}, "")
			return errors.Join(context.Cause(ctx), map[bool]error{true: errors.New("an answer that nobody gave")}[answered])
		}
		m := board(t, s, 100, 30)
		p := &player{m, make(chan tea.Msg, 100)}
		press(m, "6")
		p.run(press(m, "6")[0])
		p.run(p.until(t, func() bool { return m.rail.open != nil }))
		require.True(t, m.answering())
		if key == "q" {
			press(m, "esc") // out of the answer
		}
		assert.Nil(t, press(m, key)[0])
		quit := p.until(t, func() bool { return m.rail.over })
		assert.IsType(t, tea.QuitMsg{}, quit())
		assert.Equal(t, fault.KindCanceled, fault.KindOf(m.rail.err))
	}
}

// TestAQuestionWithoutAPageShowsItsStep, and a prompt that the last line has no room for in whole.
func TestAQuestionWithoutAPageShowsItsStep(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.runbook = func(ctx context.Context, watch RunbookWatch) error {
		v := diagnosed()
		v.Acts = []views.RailStep{
			{State: "done", Over: true, Title: "Terminate"},
			{State: "at work", Title: "Give the agent limits", Detail: []string{"set an iteration limit in the agent, for example of 50, and launch it through sbx run"}},
		}
		watch.Show(v)
		watch.Ask(ctx, ops.Question{Prompt: "press Enter when it is done, or type skip: " + strings.Repeat("and then ", 8) + "finally"}, "")
		return nil
	}
	m := board(t, s, 80, 24)
	p := &player{m, make(chan tea.Msg, 100)}
	press(m, "6")
	p.run(press(m, "6")[0])
	p.run(p.until(t, func() bool { return m.rail.open != nil }))
	frame := screen(m)
	assert.Contains(t, frame, "at work    Give the agent limits")
	assert.Contains(t, frame, "set an iteration limit in the agent, for example of 50, and launch it through\n  sbx run")
	assert.Contains(t, frame, "finally")
	press(m, "enter")
	p.until(t, func() bool { return m.rail.over })
}
