package tui

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// TestPlainSaysWhatChanges, each change once.
func TestPlainSaysWhatChanges(t *testing.T) {
	t.Parallel()
	s := newScene()
	m := NewModel(t.Context(), s, noon, "sbx", output.Cells{Plain: true})
	said := news{rows: map[sandbox.Ref]reported{}, counted: map[string]bool{}, failing: map[string]bool{}}
	round := func(change func(r *look.LiveRound)) []string {
		r := s.Round(t.Context(), "e2b")
		r.Rows = append([]look.LiveRow(nil), r.Rows...)
		change(&r)
		s.rounds["e2b"] = r
		m.Update(newRound(r, nil))
		return said.next(m)
	}
	builder, reviewer, worker := "e2b/i0a4k2m9p1r7t3v5x8z2b", "e2b/i7c2e4g6i8k0m1n3p5r7t", "e2b/i9z8y7x6w5v4u3t2s1r0q"
	nothing := func(*look.LiveRound) {}
	assert.Equal(t, []string{"e2b: 3 sandboxes: 1 stuck, 1 not judged, 1 working", builder + " is stuck: busy loop, 45m old"}, round(nothing))
	assert.Empty(t, round(nothing))
	assert.Equal(t, []string{worker + " became stuck: busy loop, 3m old"}, round(func(r *look.LiveRound) { r.Rows[2].Verdict = stuckVerdict() }))
	assert.Empty(t, round(func(r *look.LiveRound) {
		r.Rows[2].Verdict = triage.Verdict{Stuck: sandbox.Unknown, Reasons: []triage.Reason{triage.ReasonNotLooked}}
	}), "a look that is old takes nothing back")
	assert.Empty(t, round(func(r *look.LiveRound) { r.Rows[2].Verdict = stuckVerdict() }))
	assert.Equal(t, []string{worker + " works again"}, round(func(r *look.LiveRound) { r.Rows[2].Verdict = triage.Verdict{Stuck: sandbox.False} }))
	assert.Equal(t, []string{worker + " went from running to paused"}, round(func(r *look.LiveRound) { r.Rows[2].Sandbox.State = sandbox.StatePaused }))
	assert.Equal(t, []string{"e2b: 1 new: e2b/a0000000000000000000a; 1 gone: " + reviewer}, round(func(r *look.LiveRound) {
		r.Rows[1] = boxOf("e2b", "a0000000000000000000a", "first", time.Minute, triage.Verdict{Stuck: sandbox.False})
	}))
	m.Update(newRound(look.LiveRound{Profile: "e2b", Err: errors.New("no answer within 20s")}, nil))
	assert.Equal(t, []string{"e2b does not answer: no answer within 20s"}, said.next(m))
	m.Update(newRound(look.LiveRound{Profile: "e2b", Err: errors.New("no answer within 21s")}, nil))
	assert.Empty(t, said.next(m))
	assert.Equal(t, []string{"e2b answers again"}, round(nothing))
}

// TestPlainPollsAsTheDashboardDoes, and ends with its context or with what it writes to.
func TestPlainPollsAsTheDashboardDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene()
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		var lines []string
		time.AfterFunc(10*time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.rounds, "local")
		})
		time.AfterFunc(time.Minute, func() { cancel(stopped) })
		err := Plain(ctx, s, time.Now, func(text string) error { lines = append(lines, text); return nil })
		require.ErrorIs(t, err, stopped)
		assert.Contains(t, lines, "local: 1 sandbox: 1 working")
		assert.Contains(t, lines, "local: 1 gone: local/k3v9x2mq7a")
		assert.Contains(t, lines, "e2b/i7c2e4g6i8k0m1n3p5r7t is stuck: busy loop", "by a look")
	})
	broken := errors.New("no reader")
	require.ErrorIs(t, Plain(t.Context(), newScene(), noon, func(string) error { return broken }), broken)
}
