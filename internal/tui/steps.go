package tui

import (
	"fmt"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// stepPageLines draws the page of the open step: it is live, and scrolls.
func (m *Model) stepPageLines() []string {
	all, height := m.stepLines(), m.pageHeight()+1
	top := max(0, min(m.page.top, len(all)-height)) // it may have become shorter
	var lines []string
	for _, text := range all[top:min(len(all), top+height)] {
		lines = append(lines, m.cells.Cut(text, m.width))
	}
	return lines
}

// stepLines are the whole page of the open step.
func (m *Model) stepLines() []string {
	switch step := m.openStep(); {
	case m.answering():
		return m.wrapped(m.questionLines()...)
	case step == stepEnd:
		return m.wrapped(m.endLines()...)
	case step == stepVerify:
		return m.wrapped(m.verifyLines()...)
	case m.steps.err != nil:
		return m.wrapped("error: "+m.steps.err.Error(), fault.HintOf(m.steps.err))
	case len(m.steps.pages) < step:
		return []string{"reading ..."}
	default:
		return m.wrapped(m.investigationLines(step)...)
	}
}

// investigationLines are the question of a step, its answers, what they are about, and how to get them otherwise.
func (m *Model) investigationLines(step int) []string {
	p := m.steps.pages[step-1]
	lines := []string{fmt.Sprintf("%d %s   (a person has %s; answered %s ago)", step, p.Title, sandbox.FormatDuration(p.ETA), sandbox.FormatDuration(m.now().Sub(m.steps.at).Abs()))}
	for _, a := range p.Answers {
		lines = append(lines, "  "+m.cells.Fit(a.Question, 38)+" "+a.Text)
	}
	if rows := m.stepRows(step); len(rows) > 0 {
		lines = append(append(lines, ""), rows...)
	}
	lines = append(append(lines, ""), p.Text...)
	lines = append(lines, "the same: "+p.Line)
	if p.Without != "" {
		lines = append(lines, "without sbx: "+p.Without)
	}
	return lines
}

// stepRows are what the answers of a step are about.
func (m *Model) stepRows(step int) (lines []string) {
	switch step {
	case stepCount:
		for _, f := range m.feeds {
			lines = append(lines, "  "+m.feedText(f))
		}
		return append(lines, "  "+m.limitsText())
	case stepStuck, stepLogs, stepUsage:
		rows := m.suspects()
		m.sortRows(rows)
		for _, r := range rows {
			if text := m.suspectText(step, r); text != "" {
				lines = append(lines, "  "+r.ref()+"  "+text)
			}
		}
	}
	return lines
}

// suspectText is what a step says of a suspect; "" = it is not known.
func (m *Model) suspectText(step int, r *row) string {
	now := m.now()
	seen, looked := m.lookOf(r, now)
	switch step {
	case stepStuck:
		r.setAge(now)
		return sandbox.FormatElapsed(max(0, r.age)) + "  " + r.line(now).Why()
	case stepUsage:
		if r.usage != nil {
			return r.usage.Words()
		}
	case stepLogs:
		if !looked || seen.Signals.Logs == nil {
			return ""
		}
		logs := seen.Signals.Logs
		text := fmt.Sprintf("%d lines, %d errors", logs.Lines, logs.Errors)
		if logs.Error != "" {
			text += ": " + logs.Error
		} else if n := len(seen.Output); n > 0 {
			text += "; last: " + seen.Output[n-1].Text
		}
		return text
	}
	return ""
}

// endLines are the sixth step: what would end, or the run that ends it.
func (m *Model) endLines() []string {
	if m.rail != nil && !m.rail.over {
		return m.runLines()
	}
	stuck := slices.DeleteFunc(m.suspects(), func(r *row) bool { return r.group != tabStuck })
	lines := []string{fmt.Sprintf("6 End what is stuck: %d", len(stuck))}
	var causes []string
	of := map[string][]*row{}
	m.sortRows(stuck)
	for _, r := range stuck {
		why := r.line(m.now()).Why()
		if of[why] == nil {
			causes = append(causes, why)
		}
		of[why] = append(of[why], r)
	}
	slices.SortStableFunc(causes, func(a, b string) int { return len(of[b]) - len(of[a]) })
	for _, why := range causes {
		lines = append(lines, fmt.Sprintf("  %d %s", len(of[why]), why))
		for _, r := range of[why] {
			lines = append(lines, "    "+r.ref()+"  "+views.TaskAndName(*r.Sandbox))
		}
	}
	if len(stuck) > 0 {
		lines = append(lines, "", "Nothing is recorded or sent until you press 6 again, or Enter: that runs the runbook, which shows the plan of each cause and asks for its count before it ends anything.")
	} else if n := m.steps.all[tabUnjudged]; n > 0 {
		lines = append(lines, fmt.Sprintf("  nothing is known to be stuck; %d are not judged yet", n))
	} else {
		lines = append(lines, "  nothing is stuck")
	}
	lines = append(lines, "the same: "+m.program+" runbook run sandbox-stuck")
	if m.rail != nil {
		lines = append(append(lines, ""), m.runLines()...)
	}
	return lines
}

// verifyLines are the seventh step: what was done, what is left, then what the run has verified.
func (m *Model) verifyLines() []string {
	all := m.endings()
	gone, open := m.provedEnds()
	s := &m.steps.all
	lines := []string{fmt.Sprintf("7 Verify: %d of %d ended, verified; %d stuck; %d not judged", gone, gone+open, s[tabStuck], s[tabUnjudged])}
	for _, e := range all {
		lines = append(lines, strings.TrimRight("  "+string(e.Outcome)+"  "+e.Ref.String()+"  "+e.Reason, " "))
	}
	if len(all) == 0 {
		lines = append(lines, "  nothing was ended from this screen yet")
	}
	if r := m.rail; r != nil {
		for _, c := range slices.Concat(r.view.Checks, r.view.Calls) {
			lines = append(append(lines, m.runLine(c)), c.Detail...)
		}
	}
	return append(lines, "", "the targets of the fleet: "+m.program+" verify")
}

// feedText is a profile with all that is known of it.
func (m *Model) feedText(f *feed) string { return m.feedTextIn(f, farAway) }

func (m *Model) feedTextIn(f *feed, room int) string {
	var b strings.Builder
	for _, s := range m.feedSegments(f, room) {
		b.WriteString(s.text)
	}
	return b.String()
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
