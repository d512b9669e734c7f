package tui

import (
	"context"
	"errors"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

// diagnosed is a rail whose diagnosis is over.
func diagnosed() views.Rail {
	step := func(title, answer string) views.RailStep {
		return views.RailStep{State: "done", Tone: output.Good, Title: title, Answer: answer, Took: "2s of 3m", Detail: []string{"what " + title + " rests on"}}
	}
	return views.Rail{
		Title: "sandbox-stuck: Sandbox stuck",
		Steps: []views.RailStep{step("Count", "292 run"), step("Stuck", "26 of 300"), step("Logs", "12 repeat"), step("Resources", "12 at the limit"), step("Cleanup", "it has not run")},
		Causes: []views.RailStep{
			{State: "probable", Tone: output.Bad, Title: "infinite loop", Answer: "12 sandboxes; no memory leak: memory is stable", Took: "score 0.82"},
		},
		Acts:   []views.RailStep{{State: "open", Title: "Terminate the looping sandboxes"}},
		Checks: []views.RailStep{{State: "holds", Tone: output.Good, Title: "Active"}, {State: "missed", Tone: output.Bad, Title: "Ages"}},
	}
}

// drain runs a run of the runbook as far as until stops it.
func drain(m *Model, begun tea.Cmd, until func() bool) (last tea.Cmd) {
	events := make(chan tea.Msg, 1000)
	cmds := []tea.Cmd{begun}
	if both, ok := begun().(tea.BatchMsg); ok {
		cmds = both
	}
	run := func(c tea.Cmd) {
		go func() {
			if msg := c(); msg != nil {
				events <- msg
			}
		}()
	}
	for _, c := range cmds {
		run(c)
	}
	for !until() {
		_, last = m.Update(<-events)
		if last != nil && !until() {
			run(last)
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
		var answered bool
		answer, answered = watch.Ask(ctx, ops.Question{Word: "12", Prompt: "type 12 to terminate these 12: ", Objection: "many"}, "the twelve\nsandboxes")
		assert.True(t, answered)
		watch.Note("verified e2b/x in 1s")
		return fault.New(fault.KindFound, "the verification misses 1").WithHint("look at it")
	}
	m := board(t, s, 120, 40)
	begun := press(m, "1")[0]
	last := drain(m, begun, func() bool { return m.rail.open != nil })
	frame := screen(m)
	assert.Contains(t, frame, "> 1 done")
	assert.Contains(t, frame, "2s of 3m")
	assert.Contains(t, frame, "what Count rests on")
	assert.Contains(t, frame, "no memory leak: memory is")
	assert.Contains(t, frame, "7 missed")
	assert.Contains(t, frame, "6 answers: type 12")
	press(m, "1", "2", "enter")
	assert.Equal(t, tabStuck, m.tab, "2 leads to the stuck ones")
	assert.Empty(t, answer, "keys of steps are no answer")
	press(m, "7")
	assert.Contains(t, screen(m), "missed Ages")
	press(m, "6")
	assert.Contains(t, screen(m), "the twelve")
	press(m, "enter")
	assert.Contains(t, m.notice, "type the answer first")
	press(m, "1", "2", "esc")
	assert.NotNil(t, m.rail.open, "going back is no answer")
	press(m, "6", "1", "2", "enter")
	drain(m, last, func() bool { return m.rail.over && len(m.rail.notes) > 0 })
	assert.Equal(t, "12", answer)
	frame = screen(m)
	assert.Contains(t, frame, "error: the verification misses 1")
	assert.Contains(t, frame, "verified e2b/x in 1s")
	press(m, "esc")
	assert.Nil(t, m.page)
	assert.Nil(t, press(m, "1")[0], "its result is shown")
	assert.NotNil(t, press(m, "1")[0], "and then it is run again")
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
		last := drain(m, press(m, "6")[0], func() bool { return m.rail.open != nil })
		if key == "ctrl+c" {
			press(m, "6") // in the answer
			require.True(t, m.answering())
		}
		assert.Nil(t, press(m, key)[0])
		quit := drain(m, last, func() bool { return m.rail.over })
		assert.IsType(t, tea.QuitMsg{}, quit())
		assert.Equal(t, fault.KindCanceled, fault.KindOf(m.rail.err))
	}
}
