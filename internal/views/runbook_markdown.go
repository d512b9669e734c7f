package views

import (
	"cmp"
	"fmt"
	"strings"

	"sbx/internal/check"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// RunbookMarkdown is the page of a runbook, for people with sbx and without it. Settings are filled
// with their defaults.
func RunbookMarkdown(r *runbook.Runbook) string {
	w := &markdown{book: r, outline: r.Outline()}
	w.writeHead()
	w.section("Meaning", r.Spec.Meaning)
	w.section("Impact", r.Spec.Impact)
	w.section("Diagnosis", "It takes "+sandbox.FormatDuration(r.Metadata.ETA)+" and changes nothing. `sbx diagnose` does most of it at once.")
	w.writeSteps(r.Spec.Steps)
	w.section("Mitigation", "")
	w.writeWhole("end")
	w.paragraph("Where it names none, choose a procedure below.")
	for _, c := range r.Spec.Causes {
		w.writeCause(c)
	}
	for _, p := range r.Spec.Procedures {
		w.line("### " + w.outline.OfProcedure(p.ID).Number + ". " + w.fill(p.Title) + "\n")
		w.paragraph(p.Text)
		w.writeSteps(p.Steps)
	}
	w.section("Verification", "")
	w.writeWhole("verify")
	w.paragraph("`sbx verify` compares with the targets; `sbx verify --until-ok 10m` waits until all are met.")
	w.writeSteps(r.Spec.Verification)
	w.section("Escalation", "")
	w.writePeople()
	w.writeAfterwards()
	return strings.TrimRight(w.b.String(), "\n") + "\n"
}

type markdown struct {
	book    *runbook.Runbook
	outline runbook.Outline
	b       strings.Builder
}

func (w *markdown) fill(text string) string { return strings.TrimSpace(w.book.Fill(text)) }

func (w *markdown) line(text string) { w.b.WriteString(text + "\n") }

// writeWhole begins a step that has only parts.
func (w *markdown) writeWhole(word string) {
	for _, h := range w.outline.Steps {
		if h.Word == word {
			w.line("**" + h.Whole() + ": " + h.Title + "**\n")
		}
	}
}

func (w *markdown) section(title, text string) {
	w.line("## " + title + "\n")
	w.paragraph(text)
}

func (w *markdown) paragraph(text string) {
	if text != "" {
		w.line(w.fill(text) + "\n")
	}
}

func (w *markdown) writeHead() {
	m := w.book.Metadata
	w.line("# " + w.fill(m.Title) + "\n")
	w.line("<!-- Made by `make docs` from " + string(m.ID) + ".yaml. -->\n")
	if len(m.Alerts) > 0 {
		w.line("| alert | severity | condition | must hold |\n|---|---|---|---|")
		for _, id := range m.Alerts {
			rule, _ := check.Alert(string(id))
			w.line(fmt.Sprintf("| `%s`: %s | %s | %s | %s |", id, rule.Title, rule.Severity, w.code(rule.When()), heldFor(rule)))
		}
		w.line("")
	}
	if len(m.OtherAlerts) > 0 {
		w.line("Other alerts: `" + strings.Join(m.OtherAlerts, "`, `") + "`.\n")
	}
	reviewers := ""
	if len(m.Reviewers) > 0 {
		reviewers = " by " + strings.Join(m.Reviewers, ", ")
	}
	w.line(fmt.Sprintf("Owner: %s. Last review: %s; due every %d days%s.\n", w.fill(m.Owner), m.Updated, int(m.ReviewEvery.Hours())/24, reviewers))
}

// heldFor is how long the condition of an alert must hold.
func heldFor(rule check.Check) string {
	if d := rule.Duration(triage.DefaultThresholds()); d > 0 {
		return sandbox.FormatDuration(d)
	}
	return "at once"
}

func (w *markdown) writeCause(c runbook.Cause) {
	known := c.Known()
	w.line("### " + w.outline.OfCause(c.PossibleCause).Number + ". Cause: " + known.Title + "\n")
	w.paragraph(c.Text)
	if len(known.Symptoms) > 0 {
		w.line("Symptoms:\n")
		for _, s := range known.Symptoms {
			w.line("- " + s.Say)
		}
		w.line("")
	}
	if see := w.book.SeeAlso(c); see != "" {
		w.line(fmt.Sprintf("More: [%s](%s.md).\n", see, see))
	}
	w.writeSteps(c.Steps)
	if len(c.FollowUp) > 0 {
		w.line("So that it does not come again:\n")
		w.writeTasks(c.FollowUp)
	}
}

func (w *markdown) writeTasks(tasks []runbook.Task) {
	for _, t := range tasks {
		line := "- " + w.fill(t.Title)
		if t.Where != "" {
			line += " (`" + w.fill(t.Where) + "`)"
		}
		w.line(line)
	}
	w.line("")
}

func (w *markdown) writeSteps(steps []runbook.Step) {
	for _, s := range steps {
		w.writeStep(s)
	}
}

func (w *markdown) writeStep(s runbook.Step) {
	at, eta := w.outline.Of(s.ID), ""
	if d := s.Duration(); d > 0 {
		eta = " (" + sandbox.FormatDuration(d) + ")"
	}
	label := at.Number + "."
	if at.IsWhole() {
		label = at.Whole() + ":"
	}
	w.line(fmt.Sprintf("**%s %s**%s\n", label, w.fill(s.Heading()), eta))
	w.paragraph(sentence("Only if ", w.code(string(s.When))))
	w.writeCheck(s)
	w.paragraph(s.Manual)
	if s.Confirm != "" {
		w.paragraph("Go on only if the answer is yes: " + s.Confirm)
	}
	if lines := s.Lines(); len(lines) > 0 {
		w.line("```sh\n" + w.fill(strings.Join(lines, "\n")) + "\n```\n")
	}
	w.paragraph(s.Text)
	for _, q := range s.Questions() {
		w.line("- " + q.Text)
	}
	if len(s.Questions()) > 0 {
		w.line("")
	}
	if s.Ask != "" {
		w.paragraph("Note the answer: " + s.Ask)
	}
	if s.Act != nil {
		w.writeAct(s)
	}
	w.paragraph(sentence("Without sbx: ", strings.Join(withoutTool(s), "; ")))
}

// sentence is a text behind its beginning, with a full stop; "" without a text.
func sentence(begin, text string) string {
	if text == "" {
		return ""
	}
	return begin + text + "."
}

// code is a condition with the defaults of its thresholds; "" without one.
func (w *markdown) code(condition string) string {
	if condition == "" {
		return ""
	}
	return "`" + w.book.FillCondition(condition) + "`"
}

func (w *markdown) writeCheck(s runbook.Step) {
	switch rule, isAlert := s.CheckedAlert(); {
	case isAlert:
		w.paragraph(fmt.Sprintf("It is so (%s) where %s.", rule.Severity, w.code(rule.When())))
	case s.Target() != "":
		w.paragraph("Target: " + s.Target() + ".")
	case s.Check != "":
		w.paragraph(sentence("It is so"+severityWord(s.Severity)+" where ", w.code(string(s.Check))))
	case s.WaitUntil != "":
		w.paragraph(fmt.Sprintf(
			"Wait at most %s, and look every %s, until %s.", sandbox.FormatDuration(s.Within), sandbox.FormatDuration(cmp.Or(s.Every, runbook.DefaultEvery)),
			w.code(string(s.WaitUntil)),
		))
	}
}

func severityWord(s runbook.Word) string {
	if s == "" {
		return ""
	}
	return " (" + string(s) + ")"
}

// gateWords say what a person does before an act.
func gateWords(gate runbook.Word) string {
	switch gate {
	case "yes":
		return "Before it: look at what it names, and say yes."
	case "count":
		return "Before it: look at the plan, and type how many sandboxes it ends."
	}
	return "Before it: look at the plan, and type the name of what it ends."
}

func (w *markdown) writeAct(s runbook.Step) {
	w.paragraph(gateWords(s.Gate))
	w.paragraph(fmt.Sprintf("It has worked if each end is verified, and within %s %s.", sandbox.FormatDuration(s.Within), w.code(string(s.Expect))))
}

func withoutTool(s runbook.Step) []string {
	var ways []string
	for _, c := range runbook.Collectors() {
		for _, id := range s.Collect {
			if c.ID == string(id) && c.Without != "" {
				ways = append(ways, c.Without)
			}
		}
	}
	if s.Act != nil && s.Act.Without() != "" {
		ways = append(ways, s.Act.Without())
	}
	return ways
}

// writePeople are the escalations, and whom they reach.
func (w *markdown) writePeople() {
	names := map[runbook.Word]string{}
	for _, c := range w.book.Spec.Contacts {
		names[c.ID] = c.Name
	}
	for _, e := range w.book.Spec.Escalation {
		var when string
		switch rule, _ := check.Alert(string(e.Alert)); {
		case e.When != "":
			when = w.code(string(e.When))
			if e.For > 0 {
				when += " for " + sandbox.FormatDuration(e.For)
			}
		default:
			when = fmt.Sprintf("%s (%s, held: %s)", rule.Title, w.code(rule.When()), heldFor(rule))
		}
		line := "- **" + w.fill(names[e.To]) + "**: " + when
		if e.Text != "" {
			line += ". " + w.fill(e.Text)
		}
		w.line(line)
	}
	w.line("")
	if len(w.book.Spec.Contacts) == 0 {
		return
	}
	w.line("| contact | level | where | for |\n|---|---|---|---|")
	for _, c := range w.book.Spec.Contacts {
		w.line(fmt.Sprintf("| %s | %s | %s | %s |", w.fill(c.Name), c.Level, w.fill(c.Channel), w.fill(c.About)))
	}
	w.line("")
}

// writeAfterwards is what follows the incident, and the background.
func (w *markdown) writeAfterwards() {
	spec := w.book.Spec
	if len(spec.Questions)+len(spec.Actions) > 0 {
		w.section("After the incident", "")
	}
	for _, q := range spec.Questions {
		w.line("- " + w.fill(q.Ask))
	}
	if len(spec.Questions) > 0 {
		w.line("")
	}
	if len(spec.Actions) > 0 {
		w.line("To do:\n")
		w.writeTasks(spec.Actions)
	}
	for _, n := range spec.Notes {
		w.line("<details><summary>" + w.fill(n.Title) + "</summary>\n")
		w.paragraph(n.Text)
		w.line("</details>\n")
	}
}
