package tui

import (
	"fmt"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
	"sbx/internal/views"
)

// stepPageLines are the part of the page of the open step that is on the screen: it is live, and scrolls.
func (m *Model) stepPageLines(all []string) []string {
	height := m.pageHeight() + 1
	top := max(0, min(m.page.top, len(all)-height)) // it may have become shorter
	return all[top:min(len(all), top+height)]
}

// stepLines are the whole page of the open step; none where none is open.
func (m *Model) stepLines() []string {
	var facts []fact
	switch step := m.openStep(); {
	case step == 0:
		return nil
	case m.answering():
		facts = m.questionFacts()
	case step == stepEnd:
		facts = m.endFacts()
	case step == stepVerify:
		facts = m.verifyFacts()
	case m.steps.err != nil:
		facts = []fact{{text: "error: " + m.steps.err.Error(), tone: output.Bad}, {text: fault.HintOf(m.steps.err)}}
	case m.numberOf(step) == 0:
		facts = []fact{{text: "the runbook has this step no more", tone: output.Warn}}
	case m.steps.at.IsZero():
		facts = []fact{{text: "reading ...", tone: output.Muted}}
	default:
		facts = m.investigationFacts(step)
	}
	return m.factLines(m.pageWidth(), facts)
}

// investigationFacts are the question of a step, its answers, what they are about, and how to get them otherwise.
func (m *Model) investigationFacts(step int) []fact {
	p := m.steps.pages[m.numberOf(step)-1]
	facts := []fact{
		{text: fmt.Sprintf("%d %s", m.numberOf(step), p.Title), bold: true},
		{text: m.answeredText(p), tone: output.Muted},
	}
	for _, a := range p.Answers {
		one := fact{lead: a.Question, text: a.Text}
		if !a.Known {
			one.tone = output.Muted
		}
		facts = append(facts, one)
	}
	facts = append(append(facts, fact{}), m.stepRows(step)...)
	for _, text := range p.Text {
		facts = append(facts, fact{}, fact{text: text})
	}
	facts = append(facts, fact{})
	if p.Line != "" {
		facts = append(facts, fact{lead: "the same", text: p.Line, tone: output.Accent})
	}
	if p.Without != "" {
		facts = append(facts, fact{lead: "without sbx", text: p.Without, tone: output.Muted})
	}
	return facts
}

// answeredText is how old the answers of a step are, and the time that the runbook has for it.
func (m *Model) answeredText(p StepPage) string {
	text := "answered " + sandbox.FormatDuration(m.now().Sub(m.steps.at).Abs()) + " ago"
	if p.ETA > 0 {
		text += "; a person has " + sandbox.FormatDuration(p.ETA) + " for it"
	}
	return text
}

// stepRows are what the answers of a step are about.
func (m *Model) stepRows(step int) (facts []fact) {
	switch step {
	case stepCount:
		for _, f := range m.feeds {
			facts = append(facts, fact{lead: f.profile, text: m.feedText(f)})
		}
		return append(facts, fact{}, fact{text: m.limitsText(), tone: output.Muted})
	case stepStuck, stepLogs, stepUsage:
		for _, r := range m.sortedSuspects() {
			if len(facts) == mostFacts {
				return append(facts, fact{text: fmt.Sprintf("the first %d of %d; the list has all", mostFacts, len(m.steps.suspects)), tone: output.Muted})
			}
			if one := m.suspectFact(step, r); one.text != "" {
				facts = append(facts, one)
			}
		}
	}
	return facts
}

// mostFacts is how many sandboxes the page of a step names: it is drawn anew with each frame.
const mostFacts = 200

// sortedSuspects are the suspects in the order of the table, sorted once after each rebuild.
func (m *Model) sortedSuspects() []*row {
	if s := &m.steps; !s.sorted {
		m.sortRows(s.suspects)
		s.sorted, s.causes = true, nil
	}
	return m.steps.suspects
}

// causeRows are the stuck ones with one cause.
type causeRows struct {
	why  string
	rows []*row
}

// stuckByCause are the stuck ones, the most frequent cause first, parted once after each rebuild.
func (m *Model) stuckByCause() []causeRows {
	s, suspects := &m.steps, m.sortedSuspects()
	if s.causes != nil {
		return s.causes
	}
	at := map[string]int{}
	for _, r := range suspects {
		if r.group != tabStuck {
			continue
		}
		why := r.line(m.now()).Why()
		if _, known := at[why]; !known {
			at[why] = len(s.causes)
			s.causes = append(s.causes, causeRows{why: why})
		}
		c := &s.causes[at[why]]
		c.rows = append(c.rows, r)
	}
	slices.SortStableFunc(s.causes, func(a, b causeRows) int { return len(b.rows) - len(a.rows) })
	return s.causes
}

// suspectFact is what a step says of a suspect; without a text it is not known.
func (m *Model) suspectFact(step int, r *row) fact {
	now := m.now()
	one := fact{lead: r.ref()}
	seen, looked := m.lookOf(r, now)
	switch step {
	case stepStuck:
		r.setAge(now)
		line := r.line(now)
		one.text, one.tone = sandbox.FormatElapsed(max(0, r.age))+"  "+line.Why(), line.WhyTone()
	case stepUsage:
		if r.usage != nil {
			one.text = strings.TrimLeft(m.spark(r)+"  "+r.usage.Words(), " ")
		}
	case stepLogs:
		if !looked || seen.Signals.Logs == nil {
			return one
		}
		logs := seen.Signals.Logs
		one.text, one.tone = fmt.Sprintf("%d lines, %d errors", logs.Lines, logs.Errors), toneOf(logs.Errors > 0)
		if logs.Error != "" {
			one.text += ": " + logs.Error
		} else if n := len(seen.Output); n > 0 {
			one.text += "; last: " + seen.Output[n-1].Text
		}
	}
	return one
}

// endFacts are the sixth step: what would end, or the run that ends it.
func (m *Model) endFacts() []fact {
	if m.rail != nil && !m.rail.over {
		return m.runFacts()
	}
	gone, _ := m.provedEnds()
	stuck := m.steps.all[tabStuck]
	facts := []fact{{text: fmt.Sprintf("%d End what is stuck: %d", m.numberOf(stepEnd), stuck), bold: true}}
	if gone > 0 {
		facts = append(facts, m.doneFact())
	}
	for _, c := range m.stuckByCause() {
		facts = append(facts, fact{}, fact{text: fmt.Sprintf("%d %s", len(c.rows), c.why), tone: output.Bad, bold: true})
		for _, r := range c.rows[:min(len(c.rows), mostFacts)] {
			facts = append(facts, fact{lead: r.ref(), text: views.TaskAndName(*r.Sandbox)})
		}
		if more := len(c.rows) - mostFacts; more > 0 {
			facts = append(facts, fact{text: fmt.Sprintf("and %d more: the plan names each", more), tone: output.Muted})
		}
	}
	facts = append(facts, fact{})
	switch n := m.steps.all[tabUnjudged]; {
	case stuck > 0:
		facts = append(
			facts,
			fact{text: fmt.Sprintf(
				"Nothing is recorded or sent until you press %d again, or Enter: that runs the runbook, which shows the plan of each cause and asks for its count before it ends anything.",
				m.numberOf(stepEnd),
			)},
		)
	case n > 0:
		facts = append(facts, fact{text: fmt.Sprintf("nothing is known to be stuck; %d are not judged yet", n), tone: output.Warn})
	default:
		facts = append(facts, fact{text: "nothing is stuck", tone: output.Good})
	}
	facts = append(
		facts, fact{}, fact{lead: "the same", text: m.program + " runbook run " + triage.StuckRunbook, tone: output.Accent},
		fact{lead: "it has worked if", text: fmt.Sprintf("each end is verified, and step %d counts none", m.numberOf(stepStuck))},
	)
	if m.rail != nil {
		facts = append(append(facts, fact{}), m.runFacts()...)
	}
	return facts
}

// doneFact says what was ended from this screen, and what is left.
func (m *Model) doneFact() fact {
	gone, open := m.provedEnds()
	s := &m.steps.all
	one := fact{text: fmt.Sprintf("%d of %d ended, verified; %d stuck; %d not judged", gone, gone+open, s[tabStuck], s[tabUnjudged]), bold: true}
	if gone > 0 && open == 0 {
		one.tone = output.Good
	}
	return one
}

// verifyFacts are the seventh step: what was done, what is left, then what the run has verified.
func (m *Model) verifyFacts() []fact {
	all := m.endings()
	first := m.doneFact()
	first.text = fmt.Sprintf("%d Verify: %s", m.numberOf(stepVerify), first.text)
	facts := []fact{first}
	if n := m.steps.all[tabUnjudged]; n > 0 && !m.sweeping && m.steps.all[tabStuck] == 0 {
		facts = append(
			facts,
			fact{
				text: fmt.Sprintf("what is not judged shows no proof either way, so nothing ends it; Enter on one of the %d says what is missing", n),
				tone: output.Muted,
			},
		)
	}
	for _, e := range all {
		facts = append(facts, fact{lead: string(e.Outcome), text: strings.TrimRight(e.Ref.String()+"  "+e.Reason, " ")})
	}
	if len(all) == 0 {
		facts = append(facts, fact{text: "nothing was ended from this screen yet", tone: output.Muted})
	}
	if r := m.rail; r != nil {
		facts = append(facts, fact{})
		for _, c := range slices.Concat(r.view.Checks, r.view.Calls) {
			facts = append(facts, m.runFact(c))
			for _, text := range c.Detail {
				facts = append(facts, fact{text: "  " + text, tone: output.Muted})
			}
		}
	}
	return append(facts, fact{}, fact{lead: "the targets of the fleet", text: m.program + " verify", tone: output.Accent})
}

// limitsText are the limits of the figures.
func (m *Model) limitsText() string {
	var all []look.Figures
	for _, f := range m.feeds {
		if f.known {
			all = append(all, f.round.Figures)
		}
	}
	return views.ThresholdLine(all)
}
