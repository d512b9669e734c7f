package tui

import (
	"strconv"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// TestWhatIsNotOnTheScreenIsJudgedToo: of 400 rows that no record decides, those on the screen and the 300 oldest are
// looked at, twenty at a time; none while the dashboard is paused or nobody looks.
func TestWhatIsNotOnTheScreenIsJudgedToo(t *testing.T) {
	t.Parallel()
	s := newScene()
	r := s.rounds["e2b"]
	r.Rows = nil
	open := triage.Verdict{Stuck: sandbox.Unknown, Reasons: []triage.Reason{triage.ReasonNotLooked}}
	for i := range 400 {
		r.Rows = append(r.Rows, boxOf("e2b", "i"+strconv.Itoa(1000+i), "worker", time.Duration(i+1)*time.Minute, open))
	}
	s.rounds["e2b"] = r
	m := board(t, s, 80, 24)
	press(m, "p")
	assert.Nil(t, m.lookDue(noon()))
	press(m, "p")
	m.Update(tea.BlurMsg{})
	assert.Empty(t, m.toSweep(), "nobody looks")
	m.Update(tea.FocusMsg{})
	for cmd := m.lookDue(noon()); cmd != nil; cmd = m.lookDue(noon()) {
		m.Update(cmd())
		m.looking, m.sweeping = false, false // what Update asks for next is asked for by the loop
	}
	looked := map[string]bool{}
	for _, one := range s.looks {
		assert.LessOrEqual(t, len(one), mostLooks)
		for _, box := range one {
			looked[box.ID] = true
		}
	}
	assert.Len(t, looked, mostSwept)
	assert.Contains(t, looked, "i1100", "the oldest")
	assert.NotContains(t, looked, "i1099")
}
