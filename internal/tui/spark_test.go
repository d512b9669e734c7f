package tui

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// TestSparks: eight figures at most, which follow the sandbox and go with it.
func TestSparks(t *testing.T) {
	t.Parallel()
	s := newScene()
	m := board(t, s, 200, 40)
	m.cells.Plain = true
	box := s.rounds["e2b"].Rows[0].Judged()
	look := func(cpu *float64) {
		m.Update(lookMsg{looks: []look.LiveLook{{Judged: box, Usage: &look.SandboxUsage{Sandbox: box.Sandbox, Trend: triage.Trend{CPUPercent: cpu}}}}, at: noon()})
	}
	for i := range 12 {
		look(new(float64(i * 10)))
	}
	look(nil)
	assert.Contains(t, frame(m), "▃▄▅▆▆▇██  stuck")
	m.cells.ASCII = true
	assert.Contains(t, frame(m), ":--==###  stuck")
	look(new(800.0))
	assert.Contains(t, frame(m), ".......#  stuck", "several cores")
	m.width = 80
	assert.NotContains(t, frame(m), "SPARK")

	r := s.Round(t.Context(), "e2b")
	r.Rows = r.Rows[1:]
	m.Update(newRound(r, nil))
	m.Update(lookMsg{})
	assert.NotContains(t, m.sparks, box.Sandbox.Ref())
	assert.Empty(t, m.spark(&row{Sandbox: &sandbox.Sandbox{}}))
}
