package tui

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// What the detail of the row under the cursor takes, a rule line included, and from which height of the screen on it
// takes more.
const (
	fewDetails  = 4
	manyDetails = 8
	highScreen  = 30
)

func (m *Model) detailHeight() int {
	switch {
	case m.sideWidth() > 0:
		return 0
	case m.height >= highScreen:
		return manyDetails
	}
	return fewDetails
}

// detail is a line about what is under the cursor.
type detail struct {
	name string
	text string // "" = there is nothing to say
	rank int    // those of the highest are left out first
	tone output.Tone
}

// subject is what is under the cursor, with what is known of it.
type subject struct {
	name    string
	verdict segment
	details []detail
}

// subject is the subject of the open tab; the zero value = there is none.
func (m *Model) subject() subject {
	if m.tab == tabTasks {
		return m.taskSubject()
	}
	r, ok := m.current()
	if !ok {
		return subject{}
	}
	line := r.line(m.now())
	return subject{r.ref(), say(line.Why(), line.WhyTone()), m.details(r)}
}

// detailLines are what is known of what is under the cursor, below the table.
func (m *Model) detailLines() []string {
	s := m.subject()
	lines := []string{m.ruleLine(s)}
	for _, d := range m.chooseDetails(s.details, m.detailHeight()-len(lines)) {
		lines = append(lines, m.line(say(" "+m.cells.Fit(d.name, detailName), output.Muted), say(d.text, d.tone)))
	}
	return lines
}

// detailName is the width of the name of a detail.
const detailName = 7

// ruleLine divides the table from the detail, and names what that is about.
func (m *Model) ruleLine(s subject) string {
	rule := func(n int) segment {
		if m.cells.ASCII {
			return say(strings.Repeat("-", max(0, n)), output.Muted)
		}
		return say(strings.Repeat("─", max(0, n)), output.Muted)
	}
	if s.name == "" {
		return m.line(rule(m.width))
	}
	name, verdict := m.cells.Cut(s.name, m.width-8), s.verdict
	left := m.width - output.Width(name) - 8
	if verdict.text = m.cells.Cut(verdict.text, left-2); verdict.text == "" {
		return m.line(rule(2), say(" "+name+" ", output.Plain).bold(), rule(m.width-output.Width(name)-4))
	}
	return m.line(
		rule(2), say(" "+name+" ", output.Plain).bold(), rule(left-output.Width(verdict.text)), say(" ", output.Plain), verdict.bold(),
		say(" ", output.Plain), rule(2),
	)
}

// sideDetail is the same beside the table: there is room for all of it.
func (m *Model) sideDetail() []string {
	s := m.subject()
	if s.name == "" {
		return nil
	}
	facts := []fact{{text: s.name, bold: true}}
	if s.verdict.text != "" {
		facts = append(facts, fact{text: s.verdict.text, tone: s.verdict.style.Tone, bold: true})
	}
	before := ""
	for _, d := range m.chooseDetails(s.details, m.height) {
		one := fact{lead: d.name, text: d.text, tone: d.tone}
		if one.lead == before {
			one.lead = " "
		} else {
			facts = append(facts, fact{})
		}
		before = d.name
		facts = append(facts, one)
	}
	return m.factLines(m.sideWidth(), facts)
}

// fact is a text of a page, behind a muted lead or without one; the zero value is a blank line.
type fact struct {
	lead, text string
	tone       output.Tone
	bold       bool
}

// factLines draws facts in a width. Leads that follow each other have one width; text that is longer than its line goes on
// below itself.
func (m *Model) factLines(width int, facts []fact) (lines []string) {
	for i := 0; i < len(facts); {
		column, end := 0, i
		for ; end < len(facts) && facts[end].lead != ""; end++ {
			column = max(column, output.Width(facts[end].lead))
		}
		for _, f := range facts[i:end] {
			lines = append(lines, m.leadLines(width, max(column, detailName-1), f)...)
		}
		if i = end; i < len(facts) {
			f := facts[i]
			indent := f.text[:len(f.text)-len(strings.TrimLeft(f.text, " "))]
			for _, text := range output.WrapText(f.text, width, indent+"  ") {
				lines = append(lines, m.lineIn(width, f.segment(text)))
			}
			i++
		}
	}
	return lines
}

// leadLines are a fact with a lead. One whose lead takes more than half of the width has its text below it.
func (m *Model) leadLines(width, column int, f fact) (lines []string) {
	lead := "  " + m.cells.Fit(f.lead, column) + "  "
	if output.Width(lead) > width/2+4 {
		lines = append(lines, m.lineIn(width, say("  "+f.lead, output.Muted)))
		lead = "    "
	}
	for _, text := range output.WrapText(f.text, width-output.Width(lead), "") {
		lines = append(lines, m.lineIn(width, say(lead, output.Muted), f.segment(text)))
		lead = strings.Repeat(" ", output.Width(lead))
	}
	return lines
}

// segment is a part of the text of a fact.
func (f fact) segment(text string) segment {
	one := say(text, f.tone)
	one.style.Bold = f.bold
	return one
}

// details are all there are, in their order.
func (m *Model) details(r *row) []detail {
	all := []detail{{"why", cmp.Or(strings.TrimPrefix(r.Verdict.Reason, "stuck: "), r.Verdict.Say()), 0, output.Plain}}
	if seen, ok := m.lookOf(r, m.now()); ok && !r.State.Ended() {
		if len(seen.Causes) > 0 && seen.Causes[0].Cause == r.Verdict.Cause {
			all = append(all, detail{"not", views.WhyNotSecond(seen.Causes), 1, output.Muted})
		}
		if r.usage != nil {
			all = append(all, detail{"usage", strings.TrimLeft(m.spark(r)+"  "+r.usage.Words(), " "), 3, output.Plain})
		}
		for i, line := range seen.Output {
			all = append(all, detail{"output", line.Text, 2 + 2*(len(seen.Output)-1-i), output.Plain})
		}
	}
	all = append(all, detail{"life", m.lifeText(r), 20, output.Muted}, detail{"labels", labelsText(r.Labels), 21, output.Muted})
	return append(all, detail{"type", r.line(m.now()).NextLine(m.program), 0, output.Accent})
}

// lifeText is when a sandbox was made, and when it expires.
func (m *Model) lifeText(r *row) string {
	var parts []string
	if !r.CreatedAt.IsZero() {
		parts = append(parts, "created "+views.ClockTime(r.CreatedAt, m.now()))
	}
	if left := r.ExpiresAt.Sub(m.now()); left > 0 && !r.State.Ended() {
		parts = append(parts, "expires in "+sandbox.FormatElapsed(left))
	}
	return strings.Join(parts, ", ")
}

// labelsText are labels, sorted.
func labelsText(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key+"="+labels[key])
	}
	return strings.Join(parts, ", ")
}

// lookOf is the newest look at a sandbox, if it is new enough to be shown.
func (m *Model) lookOf(r *row, now time.Time) (*look.LiveLook, bool) {
	if len(m.looked) == 0 {
		return nil, false
	}
	seen, ok := m.looked[r.Ref()]
	return seen, ok && now.Sub(seen.At).Abs() < lookKeeps
}

// chooseDetails leaves out what says nothing, and the least important of what there is no room for.
func (m *Model) chooseDetails(all []detail, room int) []detail {
	all = slices.DeleteFunc(all, func(d detail) bool { return strings.TrimSpace(d.text) == "" })
	for len(all) > max(0, room) {
		last := slices.MaxFunc(all, func(a, b detail) int { return cmp.Compare(a.rank, b.rank) })
		at := slices.Index(all, last)
		all = slices.Delete(all, at, at+1)
	}
	return all
}
