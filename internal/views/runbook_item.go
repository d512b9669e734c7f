package views

import (
	"time"

	"sbx/internal/check"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/triage"
)

// RunbookListItem is one runbook.
type RunbookListItem struct {
	ID         string   `json:"id" table:""`                // Its id.
	Title      string   `json:"title" table:""`             // Its title.
	Alerts     []string `json:"alerts" table:",whole"`      // The alerts that lead to it.
	ETASeconds float64  `json:"eta_seconds" table:""`       // How long its diagnosis takes a person.
	Shipped    bool     `json:"shipped" table:""`           // True: sbx ships it. False: it is a file of yours.
	Causes     []string `json:"causes" table:",wide,whole"` // The causes for which it has a branch, by their ids in a diagnosis.
	Owner      string   `json:"owner" table:",wide"`        // The team that keeps it.
	Updated    string   `json:"updated" table:",wide"`      // The day of its last review.
	File       string   `json:"file" table:",wide"`         // Where it was read.
}

// RunbookItem is one runbook in full. Settings that its texts name stand there with their defaults.
type RunbookItem struct {
	RunbookListItem

	Reviewers    []string            `json:"reviewers"`    // Who has to agree to a change.
	ReviewDue    string              `json:"review_due"`   // The day from which its review is overdue.
	Meaning      string              `json:"meaning"`      // What it means that the alert fires.
	Impact       string              `json:"impact"`       // Who notices, and what.
	Steps        []RunbookStep       `json:"steps"`        // The diagnosis, in its order.
	Branches     []RunbookBranch     `json:"branches"`     // What to do for each cause.
	Procedures   []RunbookProcedure  `json:"procedures"`   // What to do whatever the cause.
	Verification []RunbookStep       `json:"verification"` // What shows that it helped.
	Escalation   []RunbookEscalation `json:"escalation"`   // When to call somebody.
	Contacts     []RunbookContact    `json:"contacts"`     // Who can be called.
	Questions    []RunbookQuestion   `json:"questions"`    // What the report after the incident answers.
	Actions      []RunbookTask       `json:"actions"`      // What to do after the incident.
}

// RunbookStep is one step.
type RunbookStep struct {
	ID            string   `json:"id"`             // Its id.
	Number        string   `json:"number"`         // Its number: 2 of a whole step, 2a of what is inside one, 6a1 of what belongs to a cause.
	Word          string   `json:"word"`           // What its whole step is called.
	Title         string   `json:"title"`          // Its title.
	Kind          string   `json:"kind"`           // What it does: collect, check, manual, confirm, act or wait_until.
	ETASeconds    float64  `json:"eta_seconds"`    // How long it takes a person; 0 for a check of what was collected.
	Commands      []string `json:"commands"`       // The lines that a person types.
	When          *string  `json:"when"`           // The condition without which it is left out; null for none.
	Condition     *string  `json:"condition"`      // The condition that it checks or waits for; null for none.
	Gate          *string  `json:"gate"`           // The least that a person does before it acts: yes, count or name; null where it does not act.
	Expect        *string  `json:"expect"`         // The condition that proves its effect; null where it does not act.
	WithinSeconds float64  `json:"within_seconds"` // How long expect or a wait may take; 0 for neither.
	Rows          []string `json:"rows"`           // The requirements that it answers.
}

// RunbookBranch is what to do for one cause.
type RunbookBranch struct {
	Number   string        `json:"number"`    // Its number.
	Cause    string        `json:"cause"`     // The cause, by its id in a diagnosis.
	Title    string        `json:"title"`     // What the diagnosis calls it.
	See      *string       `json:"see"`       // The runbook about it; null for none.
	Steps    []RunbookStep `json:"steps"`     // What to do now.
	FollowUp []RunbookTask `json:"follow_up"` // What to do so that it does not come again.
}

// RunbookProcedure is a list of steps with a title.
type RunbookProcedure struct {
	ID     string        `json:"id"`     // Its id.
	Number string        `json:"number"` // Its number.
	Title  string        `json:"title"`  // Its title.
	Steps  []RunbookStep `json:"steps"`  // The steps.
}

// RunbookEscalation says when to call whom.
type RunbookEscalation struct {
	Alert      *string `json:"alert"`       // The alert; null for a condition of its own.
	Condition  string  `json:"condition"`   // The condition.
	ForSeconds float64 `json:"for_seconds"` // How long it has to hold, by the default thresholds; 0 = at once.
	To         string  `json:"to"`          // The contact, by its id.
}

// RunbookContact is somebody who can be called.
type RunbookContact struct {
	ID      string  `json:"id"`      // Its id.
	Level   string  `json:"level"`   // The level of alerts that goes there: agents, infrastructure or vendor.
	Name    string  `json:"name"`    // The name.
	Channel *string `json:"channel"` // Where to reach them; null where the runbook does not say.
	About   string  `json:"about"`   // What they are called for.
}

// RunbookQuestion is what the report after the incident answers.
type RunbookQuestion struct {
	ID         string   `json:"id"`          // Its id.
	Question   string   `json:"question"`    // The question.
	AnsweredBy []string `json:"answered_by"` // The collectors that answer it; empty = a person does.
}

// RunbookTask is something to do after the incident.
type RunbookTask struct {
	Title string  `json:"title"` // What to do.
	Group *string `json:"group"` // What it improves: detection, code or docs; null for neither.
	Where *string `json:"where"` // The command that does it already; null where a person does it.
}

// LintItem is one mistake in a runbook.
type LintItem struct {
	File     string `json:"file" table:""`     // The file.
	Line     int    `json:"line" table:""`     // The line, from 1.
	Column   int    `json:"column" table:""`   // The column, from 1, in characters.
	Severity string `json:"severity" table:""` // error or warning. Only an error is a finding for the exit code.
	// What it is about: syntax, step-kind, reference, expression, not-collected, unreachable-cause, no-gate, no-proof,
	// eta, eta-sum, number, duplicate, no-runbook, stale or unused.
	Rule    string   `json:"rule" table:""`
	Message string   `json:"message" table:""`            // What is wrong.
	Hint    *string  `json:"hint" table:",wide"`          // What to write instead; null where the message says all.
	Excerpt []string `json:"excerpt" table:",wide,whole"` // The line of the file, and a line with carets below the place.
}

// DraftItem is a runbook that was written.
type DraftItem struct {
	ID   string  `json:"id" table:""`   // Its id.
	Path *string `json:"path" table:""` // Its file; null where it was only printed.
	Text string  `json:"text" table:""` // The document.
}

func runbookListItem(r *runbook.Runbook) RunbookListItem {
	m := r.Metadata
	item := RunbookListItem{
		ID: string(m.ID), Title: r.Fill(m.Title), Alerts: r.AlertNames(), ETASeconds: output.Seconds(m.ETA), Shipped: r.Origin.Shipped,
		Owner: m.Owner, Updated: m.Updated.String(), File: r.Origin.File,
	}
	for _, c := range r.Spec.Causes {
		item.Causes = append(item.Causes, string(c.PossibleCause))
	}
	return item
}

func runbookItem(r *runbook.Runbook) RunbookItem {
	spec, outline := r.Spec, r.Outline()
	item := RunbookItem{
		RunbookListItem: runbookListItem(r), Reviewers: r.Metadata.Reviewers, ReviewDue: r.ReviewDue().Format(time.DateOnly),
		Meaning: r.Fill(spec.Meaning), Impact: r.Fill(spec.Impact), Steps: runbookSteps(r, outline, spec.Steps), Verification: runbookSteps(r, outline, spec.Verification),
		Escalation: runbookEscalations(r), Actions: runbookTasks(r, spec.Actions),
	}
	for _, c := range spec.Causes {
		item.Branches = append(item.Branches, RunbookBranch{
			outline.OfCause(c.PossibleCause).Number, string(c.PossibleCause), c.Known().Title, orNil(r.SeeAlso(c)), runbookSteps(r, outline, c.Steps), runbookTasks(r, c.FollowUp),
		})
	}
	for _, c := range spec.Procedures {
		item.Procedures = append(
			item.Procedures, RunbookProcedure{string(c.ID), outline.OfProcedure(c.ID).Number, r.Fill(c.Title), runbookSteps(r, outline, c.Steps)},
		)
	}
	for _, c := range spec.Contacts {
		item.Contacts = append(item.Contacts, RunbookContact{string(c.ID), string(c.Level), c.Name, orNil(c.Channel), r.Fill(c.About)})
	}
	for _, q := range spec.Questions {
		question := RunbookQuestion{ID: string(q.ID), Question: r.Fill(q.Ask)}
		for _, id := range q.AnsweredBy {
			question.AnsweredBy = append(question.AnsweredBy, string(id))
		}
		item.Questions = append(item.Questions, question)
	}
	return item
}

func runbookEscalations(r *runbook.Runbook) (all []RunbookEscalation) {
	for _, e := range r.Spec.Escalation {
		rule, _ := check.Alert(string(e.Alert))
		when, held := rule.When(), rule.Duration(triage.DefaultThresholds())
		if e.When != "" {
			when, held = string(e.When), e.For
		}
		all = append(all, RunbookEscalation{orNil(string(e.Alert)), when, output.Seconds(held), string(e.To)})
	}
	return all
}

func runbookTasks(r *runbook.Runbook, tasks []runbook.Task) (all []RunbookTask) {
	for _, t := range tasks {
		all = append(all, RunbookTask{r.Fill(t.Title), orNil(string(t.Group)), orNil(t.Where)})
	}
	return all
}

func runbookSteps(r *runbook.Runbook, outline runbook.Outline, steps []runbook.Step) (all []RunbookStep) {
	for _, s := range steps {
		lines, at := s.Lines(), outline.Of(s.ID)
		for i := range lines {
			lines[i] = r.Fill(lines[i])
		}
		condition := s.Check
		if s.WaitUntil != "" {
			condition = s.WaitUntil
		}
		all = append(all, RunbookStep{
			ID: string(s.ID), Number: at.Number, Word: at.Word, Title: r.Fill(s.Heading()), Kind: string(s.Kind()), ETASeconds: output.Seconds(s.Duration()), Commands: lines,
			When: orNil(string(s.When)), Condition: orNil(string(condition)), Gate: orNil(string(s.Gate)), Expect: orNil(string(s.Expect)),
			WithinSeconds: output.Seconds(s.Within), Rows: s.Requirements(),
		})
	}
	return all
}
