package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// TestTheDetailSaysWhyAndWhyNot: all of it where there is room, else the most important lines.
func TestTheDetailSaysWhyAndWhyNot(t *testing.T) {
	t.Parallel()
	s := newScene()
	m := board(t, s, 100, 30)
	m.cells.Plain = true
	detail := func() string {
		lines := m.detailLines()
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " ")
		}
		return strings.Join(lines, "\n")
	}
	head := "── e2b/i0a4k2m9p1r7t3v5x8z2b " + strings.Repeat("─", 51) + " stuck: busy loop ──\n why    a processor is busy, and nothing comes out\n"
	const life, foot = " life   created 11:15:00\n", " type   sbx terminate e2b/i0a4k2m9p1r7t3v5x8z2b  # end it"
	assert.Equal(t, head+life+foot, detail(), "nobody looked")

	box := s.rounds["e2b"].Rows[0].Judged()
	box.Output = []sandbox.LogLine{{Text: "planning step 3\x1b[2J"}, {Text: "planning step 4"}}
	seen := look.LiveLook{
		Judged: box, Usage: &look.SandboxUsage{Sandbox: box.Sandbox, Trend: triage.Trend{CPUPercent: new(98.0)}, Verdict: stuckVerdict()},
		Causes: []triage.Finding{{Cause: sandbox.CauseBusyLoop}, {Title: "memory leak", WhyNot: "memory is flat"}},
	}
	m.Update(lookMsg{looks: []look.LiveLook{seen}, at: noon()})
	assert.Equal(t, head+" not    memory leak: memory is flat\n usage  █  cpu 98%, busy loop\n output planning step 3\\x1b[2J\n output planning step 4\n"+life+foot, detail())
	m.height = highScreen - 1
	assert.Equal(t, head+" not    memory leak: memory is flat\n"+foot, detail(), "a low screen has room for the reasons and the command")
	m.height = highScreen - 1 + manyDetails
	seen.Causes[0].Cause = sandbox.CauseLeak
	m.Update(lookMsg{looks: []look.LiveLook{seen}, at: noon()})
	assert.Equal(t, head+" usage  ██  cpu 98%, busy loop\n output planning step 3\\x1b[2J\n output planning step 4\n"+life+foot, detail(), "what speaks against another cause than the shown one is no answer")
	m.now = func() time.Time { return noon().Add(lookKeeps) }
	assert.Equal(t, head+life+foot, detail(), "the look is too old")
}
