package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// The steps of the runbook, by their keys.
const (
	stepCount = 1 + iota
	stepStuck
	stepLogs
	stepUsage
	stepCleanup
	stepEnd
	stepVerify
	stepsEnd
)

// StepKind is which of the seven a step is, by its id; 0 = one that only a runbook of the user's has.
func StepKind(id string) int {
	return 1 + slices.IndexFunc(triage.StuckSteps(), func(s triage.InvestigationStep) bool { return s.ID == id })
}

// StepPage is a step of the runbook with what is known now.
type StepPage struct {
	Kind    int    // StepKind
	Word    string // on the strip
	Title   string
	Text    []string // what to know about it
	Answers []look.Answer
	Line    string        // the command line that answers the same
	Without string        // how it is done without sbx
	ETA     time.Duration // what the runbook allows a person
}

// CleanupWord says in a word or two how cleanup runs.
type CleanupWord struct {
	Text string
	Tone output.Tone
}

// Times of the steps.
const (
	stepsAgain   = 2 * time.Second  // the page of a step is answered again after
	cleanupAgain = 15 * time.Second // the record of cleanup is read again after
	oldFigure    = time.Minute      // an older figure is shown with its age
)

// The messages of the steps.
type (
	stepsMsg struct {
		pages []StepPage
		err   error
		at    time.Time
	}
	cleanupMsg CleanupWord
)

// steps are what is known of the steps beside the rows.
type steps struct {
	pages         []StepPage // of the runbook, as it was read last
	err           error
	at            time.Time // when it was read; zero = never
	asking        bool
	cleanup       CleanupWord // "" = it was not read
	cleanupNext   time.Time
	cleanupAsking bool
	all           [tabs]int64 // sandboxes by their groups, whatever the filter leaves
	endings       []sandbox.Ending
	suspects      []*row // that are stuck or at risk
	sorted        bool   // they are in the order of the table
	causes        []causeRows
	looked        logsAndUsage
	waiting       int // rows that were not looked at yet, although their records do not decide: more may be stuck
}

// cell is a step on the strip.
type cell struct {
	name, figure string
	tone         output.Tone
}

// strip are the cells of the steps, by what was listed and judged.
func (m *Model) strip() []cell {
	var strip []cell
	cells := m.kindCells()
	for _, p := range m.steps.pages {
		one := cell{}
		if p.Kind > 0 {
			one = cells[p.Kind-1]
		}
		one.name = p.Word
		strip = append(strip, one)
	}
	return strip[:min(len(strip), stepsEnd-1)]
}

// kindCells are the cells of the seven, by their kinds and without names.
func (m *Model) kindCells() []cell {
	cells := make([]cell, stepsEnd-1)
	for i := range cells {
		cells[i] = cell{"", "-", output.Muted}
	}
	cells[stepCount-1].figure, cells[stepVerify-1].figure = m.activeText(), "not yet"
	set := func(step int, tone output.Tone, format string, args ...any) {
		cells[step-1].figure, cells[step-1].tone = fmt.Sprintf(format, args...), tone
	}
	if slices.ContainsFunc(m.feeds, func(f *feed) bool { return f.known }) {
		cells[stepCount-1].tone = output.Plain
		m.setListed(set)
		m.setLooked(set)
	}
	if c := m.steps.cleanup; c.Text != "" {
		set(stepCleanup, c.Tone, "%s", c.Text)
	}
	switch {
	case m.rail != nil && m.rail.open != nil:
		set(stepEnd, output.Warn, "asks you")
	case m.act.runs(), m.rail != nil && !m.rail.over:
		set(stepEnd, output.Warn, "at work")
	}
	switch gone, open := m.provedEnds(); {
	case open > 0:
		set(stepVerify, output.Bad, "%d unproved", open)
	case gone > 0:
		set(stepVerify, output.Good, "%d gone", gone)
	}
	m.ageFigures(cells)
	return cells
}

// shippedSteps are the steps of the shipped runbook, which the strip has until the runbook was read.
func shippedSteps() (all []StepPage) {
	for i, s := range triage.StuckSteps() {
		all = append(all, StepPage{Kind: i + 1, Word: s.Word})
	}
	return all
}

// stepAt is what page.step has for the step with a number: its kind, or above all kinds its place; 0 = there is none.
func (m *Model) stepAt(number int) int {
	pages := m.steps.pages
	switch {
	case number > len(pages):
		return 0
	case pages[number-1].Kind > 0:
		return pages[number-1].Kind
	}
	return stepsEnd + number
}

// numberOf is the number of such a step; 0 = the runbook has none.
func (m *Model) numberOf(step int) int {
	for number := range m.steps.pages {
		if m.stepAt(number+1) == step {
			return number + 1
		}
	}
	return 0
}

// setCell sets the figure of a step.
type setCell func(step int, tone output.Tone, format string, args ...any)

// setListed sets the figures that the lists and their verdicts give.
func (m *Model) setListed(set setCell) {
	s := &m.steps
	switch stuck, all := s.all[tabStuck], s.all[tabAll]-s.all[tabEnded]; {
	case stuck > 0 && s.waiting > 0:
		set(stepStuck, output.Bad, "%d+ found", stuck)
		set(stepEnd, output.Warn, "%d+ key %d", stuck, m.numberOf(stepEnd))
	case stuck > 0:
		set(stepStuck, output.Bad, "%d of %d", stuck, all)
		set(stepEnd, output.Warn, "%d: key %d", stuck, m.numberOf(stepEnd))
	case s.all[tabUnjudged] > 0:
		set(stepStuck, output.Warn, "0, %d ?", s.all[tabUnjudged])
		set(stepEnd, output.Plain, "none")
	default:
		set(stepStuck, output.Good, "0 of %d", all)
		set(stepEnd, output.Good, "none")
	}
}

// setLooked sets the figures that the looks at suspects give.
func (m *Model) setLooked(set setCell) {
	suspects := m.steps.all[tabStuck] + m.steps.all[tabRisk]
	if suspects == 0 {
		set(stepLogs, output.Plain, "none")
		set(stepUsage, output.Plain, "none")
		return
	}
	known := m.steps.looked
	switch {
	case known.read > 0:
		set(stepLogs, toneOf(known.withErrors > 0), "%d errors", known.withErrors)
	case known.looked > 0:
		set(stepLogs, output.Muted, "no lines")
	}
	set(stepUsage, output.Plain, "%d read", known.used)
}

func toneOf(bad bool) output.Tone {
	if bad {
		return output.Warn
	}
	return output.Plain
}

// activeText is how many sandboxes have not ended.
func (m *Model) activeText() string {
	return strconv.FormatInt(m.steps.all[tabAll]-m.steps.all[tabEnded], 10)
}

// ageFigures says of the figures that rest on the lists how old they are, where a list is old.
func (m *Model) ageFigures(cells []cell) {
	var oldest time.Duration
	for _, f := range m.feeds {
		if f.known {
			oldest = max(oldest, m.now().Sub(f.round.At))
		}
	}
	if oldest < oldFigure {
		return
	}
	for _, i := range []int{stepCount, stepStuck} {
		c := &cells[i-1]
		c.figure, c.tone = c.figure+" "+sandbox.FormatElapsed(oldest), output.Muted
	}
}

// logsAndUsage are the figures that the looks at suspects give: whose log was read, whose log has errors, whose usage
// is known.
type logsAndUsage struct{ looked, read, withErrors, used int64 }

// suspectFigures finds those that are stuck or at risk, and counts what is known of them.
func (m *Model) suspectFigures() {
	s := &m.steps
	s.suspects, s.sorted, s.looked, s.waiting = s.suspects[:0], false, logsAndUsage{}, 0
	for r := range m.all() {
		if r.needsLook && r.seen == nil && !r.stale && r.State == sandbox.StateRunning {
			s.waiting++
		}
		if r.group != tabStuck && r.group != tabRisk {
			continue
		}
		s.suspects = append(s.suspects, r)
		if r.seen == nil {
			continue
		}
		s.looked.looked++
		if logs := r.seen.Signals.Logs; logs != nil && logs.Lines > 0 {
			s.looked.read++
			if logs.Errors > 0 {
				s.looked.withErrors++
			}
		}
		if r.seen.Usage != nil {
			s.looked.used++
		}
	}
}

// provedEnds counts what was ended from this screen.
func (m *Model) provedEnds() (gone, open int) {
	for _, e := range m.endings() {
		switch e.Outcome {
		case sandbox.OutcomeVerified, sandbox.OutcomeAlreadyGone:
			gone++
		case sandbox.OutcomeSkipped, sandbox.OutcomeChanged, sandbox.OutcomeNotAttempted:
		default:
			open++
		}
	}
	return gone, open
}

// endings are the endings of the acts and of the run of the runbook.
func (m *Model) endings() []sandbox.Ending {
	if m.rail == nil {
		return m.steps.endings
	}
	return slices.Concat(m.steps.endings, m.rail.view.Endings)
}

// stripLines are the two lines of the strip: seven equal cells, the open one marked.
func (m *Model) stripLines() []string {
	width := m.stepWidth()
	gap := min(1, width/narrowCell)
	var names, figures []segment
	for i, c := range m.strip() {
		shade, open := output.CellShade, m.openStep() > 0 && m.openStep() == m.stepAt(i+1)
		if c.tone == output.Bad {
			shade = output.AlarmShade
		}
		name := say(m.cells.Fit(cellName(i+1, c.name, width, open), width-gap), output.Plain).on(shade).bold()
		if open {
			name.style = output.Style{Tone: output.Accent, Shade: output.FullShade, Bold: true}
		}
		figure := say(m.cells.Fit(strings.Repeat(" ", gap)+c.figure, width-gap), c.tone).on(shade)
		blank := say(strings.Repeat(" ", gap), output.Plain)
		names, figures = append(names, name, blank), append(figures, figure, blank)
	}
	return []string{m.line(names...), m.line(figures...)}
}

// stepWidth is the width of a cell of the strip with the gap behind it.
func (m *Model) stepWidth() int { return m.width / (stepsEnd - 1) }

// narrowCell is the width from which a cell has room for a margin and every name.
const narrowCell = 11

// cellName is the name of a step with its key, marked where its page is open.
func cellName(step int, name string, width int, open bool) string {
	mark, gap := " ", " "
	if width < narrowCell {
		mark, name = "", strings.TrimSuffix(name, "up")
	}
	if open {
		gap = ">"
	}
	return mark + strconv.Itoa(step) + gap + name
}
