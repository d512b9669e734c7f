package tui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// figuresOf are the figures of the strip, by the names of the steps.
func figuresOf(m *Model) map[string]string {
	all := map[string]string{}
	for _, c := range m.strip() {
		all[c.name] = c.figure
	}
	return all
}

// TestTheStripFollowsTheWorld: its figures are those of what was listed, looked at and ended, whatever the filter leaves
// and whichever page is open.
func TestTheStripFollowsTheWorld(t *testing.T) {
	t.Parallel()
	s := newScene()
	empty := NewModel(t.Context(), s, noon, "sbx", board(t, s, 80, 24).cells)
	assert.Equal(t, map[string]string{"count": "0", "stuck": "-", "logs": "-", "usage": "-", "cleanup": "-", "end": "-", "verify": "not yet"}, figuresOf(empty))
	m := board(t, s, 80, 24)
	m.Update(cleanupMsg(s.Cleanup(t.Context())))
	before := figuresOf(m)
	assert.Equal(t, "4", before["count"])
	assert.Equal(t, "1+ found", before["stuck"], "one waits for its first look")
	assert.Equal(t, "1+ key 6", before["end"])
	assert.Equal(t, "never ran", before["cleanup"])
	m.setFilter("nothing has this")
	assert.Equal(t, before, figuresOf(m))
	m.setFilter("")

	box := s.rounds["e2b"].Rows[0].Judged()
	box.Signals.Logs = &triage.LogFindings{Lines: 3, Errors: 1, Error: "connection refused"}
	m.Update(lookMsg{looks: []look.LiveLook{{Judged: box}}, at: noon()})
	assert.Equal(t, "1 errors", figuresOf(m)["logs"])

	r := s.rounds["e2b"]
	r.Profile, r.Rows = "e2b", r.Rows[1:]
	m.Update(newRound(r, nil))
	m.act = &act{step: actRunning, stop: func() {}}
	m.page = &page{}
	assert.Equal(t, "at work", figuresOf(m)["end"])
	m.Update(doneMsg{m.act, ops.ActResult{Endings: []sandbox.Ending{{Ref: box.Sandbox.Ref(), Outcome: sandbox.OutcomeVerified}}}})
	after := figuresOf(m)
	assert.Equal(t, []string{"3", "0, 1 ?", "none", "1 gone"}, []string{after["count"], after["stuck"], after["end"], after["verify"]})
	assert.Contains(t, screen(m), "last: 1 ended, verified")
	m.Update(doneMsg{m.act, ops.ActResult{Endings: []sandbox.Ending{{Outcome: sandbox.OutcomeAccepted}}}})
	assert.Equal(t, "1 unproved", figuresOf(m)["verify"])
	m.now = func() time.Time { return noon().Add(2 * time.Minute) }
	assert.Contains(t, figuresOf(m)["stuck"], " 2m")
}

// TestStepsAreLive: a digit opens a step in place of the list, the strip stays, and its page is answered again.
func TestStepsAreLive(t *testing.T) {
	t.Parallel()
	s := newScene()
	m := board(t, s, 80, 24)
	m.cells.Plain = true
	m.Update(cleanupMsg(s.Cleanup(t.Context())))
	strip := m.stripLines()
	for key, want := range map[string][]string{
		"1": {"1>count", "1 Check active sandbox count", "e2b     active 3 of 20", "the same     sbx stats", "without sbx  the dashboard of the provider"},
		"2": {"2>stuck", "e2b/i0a4k2m9p1r7t3v5x8z2b  45m  stuck: busy loop"},
		"4": {"4>usage", "Check resource usage"},
		"6": {"6>end", "6 End what is stuck: 1", "1 stuck: busy loop", "the same          sbx runbook run sandbox-stuck"},
		"7": {"7>verify", "7 Verify: 0 of 0 ended, verified; 1 stuck; 1 not judged", "nothing was ended from this screen yet"},
	} {
		m.steps.at = time.Time{}
		for _, cmd := range press(m, key) {
			take(m, cmd)
		}
		frame := screen(m)
		for _, text := range want {
			assert.Contains(t, frame, text, key)
		}
		assert.Len(t, m.Frame(), 24)
	}
	assert.Nil(t, m.rail, "looking begins no run")
	press(m, "esc")
	assert.Equal(t, strip, m.stripLines())
	m.Update(stepsMsg{err: fault.New(fault.KindUsage, "the runbook is broken").WithHint("sbx runbook lint")})
	press(m, "3")
	assert.Contains(t, screen(m), "error: the runbook is broken")
}

// take runs a command, and gives the model what it says.
func take(m *Model, cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, one := range msg {
			take(m, one)
		}
	default:
		m.Update(msg)
	}
}

// TestARunbookOfTheUsersOwn has its own steps on the strip, 8 and 9 are keys, and its end is where it stands.
func TestARunbookOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	page := func(id, word string) StepPage {
		return StepPage{Kind: StepKind(id), Word: word, Title: "Title of " + word, Text: []string{"text of " + word}}
	}
	m := board(t, newScene(), 80, 24)
	m.cells.Plain = true
	m.Update(stepsMsg{at: noon(), pages: []StepPage{
		page("stuck", "stuck"), page("call-team", "call-team"), page("count", "count"), page("logs", "logs"), page("resources", "usage"),
		page("a", "a"), page("b", "b"), page("end", "end"), page("verify", "verify"),
	}})
	assert.Equal(t, " 1 stuck    2 call-t…  3 count    4 logs     5 usage    6 a        7 b       ", m.stripLines()[0])
	assert.Equal(t, "1+ key 8", m.kindCells()[stepEnd-1].figure)
	press(m, "2")
	assert.Contains(t, screen(m), "2 Title of call-team")
	assert.Contains(t, screen(m), "text of call-team")
	assert.Contains(t, m.stripLines()[0], "2>call-t…")
	press(m, "8")
	assert.Contains(t, screen(m), "8 End what is stuck: 1")
	assert.Contains(t, screen(m), "8 or Enter begins")
	press(m, "9")
	assert.Contains(t, screen(m), "9 Verify: 0 of 0 ended")
	press(m, "2")
	m.Update(stepsMsg{at: noon(), pages: []StepPage{page("count", "count")}})
	assert.Contains(t, screen(m), "the runbook has this step no more")
	press(m, "7")
	assert.Equal(t, "the runbook has 1 steps", m.notice)
	for x := range 80 {
		click(m, x, stripAt)
	}
	assert.Equal(t, stepCount, m.openStep())
}

// TestAnOpenStepReadsItsSuspects, wherever the table stands.
func TestAnOpenStepReadsItsSuspects(t *testing.T) {
	t.Parallel()
	s := newScene()
	m := board(t, s, 80, 24)
	m.openTab(tabWorking)
	m.looked = map[sandbox.Ref]*look.LiveLook{}
	s.looks = nil
	press(m, "4")
	m.looking = false
	cmd := m.lookDue(noon())
	require.NotNil(t, cmd)
	take(m, cmd)
	require.NotEmpty(t, s.looks)
	assert.Equal(t, s.rounds["e2b"].Rows[0].Sandbox.Ref(), s.looks[0][0].Ref(), "it is stuck")
}

// TestTheStripHasItsPlace at every size: lines three and four, seven equal cells.
func TestTheStripHasItsPlace(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{leastWidth, leastHeight}, {80, 24}, {120, 40}, {200, 60}} {
		m := board(t, newScene(), size[0], size[1])
		m.cells.Plain = true
		for _, key := range []string{"", "1", "6", "esc", "enter"} {
			if key != "" {
				press(m, key)
			}
			line := m.Frame()[2]
			for i, name := range []string{"count", "stuck", "logs", "usage", "clean", "end", "verify"} {
				at := strings.Index(line, name)
				assert.Equal(t, i, at/(size[0]/7), "%s of %q at %d cells", name, line, size[0])
			}
		}
	}
}
