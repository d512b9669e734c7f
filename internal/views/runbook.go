package views

import (
	"fmt"
	"strings"
	"time"

	"sbx/internal/check"
	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Record is one row of a document about runbooks or incidents, by key: texts, times and verdicts, which
// need no column with logic of its own.
type Record map[string]any

// recordColumns are columns by their names; those behind "|" are wide ones. Durations and words of
// severity have their own look.
func recordColumns(names string) []output.Column[Record] {
	var all []output.Column[Record]
	shown, wide, _ := strings.Cut(names, "|")
	for i, list := range []string{shown, wide} {
		for name := range strings.FieldsSeq(list) {
			c := output.Column[Record]{Name: name, Value: func(r Record) any { return r[name] }, Tone: func(r Record) output.Tone { return wordTone(r[name]) }}
			if strings.HasSuffix(name, "_seconds") {
				c.Text = func(r Record) string { return secondsText(r[name]) }
			}
			if i > 0 {
				c.Level = output.Wide
			}
			all = append(all, c)
		}
	}
	return all
}

func secondsText(value any) string {
	n, _ := value.(float64)
	return sandbox.FormatDuration(time.Duration(n * float64(time.Second)))
}

func wordTone(value any) output.Tone {
	switch value {
	case string(runbook.Error), testChanged, testUnreadable:
		return output.Bad
	case string(runbook.Warning):
		return output.Warn
	}
	return output.Plain
}

// RunbookColumns are those of `sbx runbook ls`.
func RunbookColumns() []output.Column[Record] {
	return recordColumns("id title alerts eta_seconds shipped | causes owner updated file")
}

// RunbookDocumentColumns are those of `sbx runbook show`.
func RunbookDocumentColumns() []output.Column[Record] {
	return append(RunbookColumns(), recordColumns("reviewers review_due meaning impact steps branches procedures verification escalation contacts questions actions")...)
}

// LintColumns are those of `sbx runbook lint`.
func LintColumns() []output.Column[Record] {
	return recordColumns("file line column severity rule message | hint excerpt")
}

// DraftColumns are those of `sbx runbook new`.
func DraftColumns() []output.Column[Record] { return recordColumns("id path text") }

// showRecords prints a list. A row with an error is one that did not succeed.
func showRecords(p *output.Printer, spec output.ListSpec[Record], rows []Record, errs map[int]error) error {
	list, err := output.NewList(p, spec)
	if err != nil {
		return err
	}
	for i, row := range rows {
		if err := errs[i]; err != nil {
			_ = list.AddFailed(row, err) // Close gives the error of stdout
			continue
		}
		_ = list.Add(row)
	}
	return list.Close()
}

func showRecord(p *output.Printer, spec output.ItemSpec[Record], row Record) error {
	return output.ShowItem(p, spec, row)
}

// ShowRunbooks lists runbooks. Errs are of those that cannot be read.
func ShowRunbooks(p *output.Printer, schema string, books []*runbook.Runbook, errs []error) error {
	list, err := output.NewList(p, output.ListSpec[Record]{Schema: schema, Columns: RunbookColumns(), Empty: "no runbooks"})
	if err != nil {
		return err
	}
	for _, b := range books {
		_ = list.Add(runbookRecord(b)) // Close gives the error of stdout
	}
	for _, err := range errs {
		list.Fail(err)
	}
	return list.Close()
}

func runbookRecord(r *runbook.Runbook) Record {
	causes := []any{}
	for _, c := range r.Spec.Causes {
		causes = append(causes, string(c.Theory))
	}
	m := r.Metadata
	return Record{
		"id": string(m.ID), "title": r.Fill(m.Title), "alerts": textList(r.AlertNames()), "causes": causes, "eta_seconds": output.Seconds(m.ETA),
		"owner": m.Owner, "updated": m.Updated.String(), "shipped": r.Origin.Shipped, "file": r.Origin.File,
	}
}

func textList(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}

// ShowRunbook shows one runbook, to people as its page.
func ShowRunbook(p *output.Printer, schema string, r *runbook.Runbook) error {
	row, spec := runbookRecord(r), r.Spec
	row["reviewers"], row["review_due"] = textList(r.Metadata.Reviewers), r.ReviewDue().Format(time.DateOnly)
	row["meaning"], row["impact"] = r.Fill(spec.Meaning), r.Fill(spec.Impact)
	row["steps"], row["verification"] = stepFields(r, spec.Steps), stepFields(r, spec.Verification)
	branches, procedures := []any{}, []any{}
	for _, c := range spec.Causes {
		branches = append(branches, output.Fields{
			{Key: "cause", Value: string(c.Theory)},
			{Key: "title", Value: c.Known().Title},
			{Key: "see", Value: TextOrNil(r.SeeAlso(c))},
			{Key: "steps", Value: stepFields(r, c.Steps)},
			{Key: "follow_up", Value: taskFields(r, c.FollowUp)},
		})
	}
	for _, c := range spec.Procedures {
		procedures = append(procedures, output.Fields{{Key: "id", Value: string(c.ID)}, {Key: "title", Value: r.Fill(c.Title)}, {Key: "steps", Value: stepFields(r, c.Steps)}})
	}
	row["branches"], row["procedures"] = branches, procedures
	row["escalation"], row["contacts"], row["questions"] = peopleFields(r)
	row["actions"] = taskFields(r, spec.Actions)
	page := func(s *output.Sheet, _ Record) { s.Text(PlainPage(RunbookMarkdown(r))) }
	return showRecord(p, output.ItemSpec[Record]{Schema: schema, Columns: RunbookDocumentColumns(), Human: page}, row)
}

func peopleFields(r *runbook.Runbook) (escalations, contacts, questions []any) {
	escalations, contacts, questions = []any{}, []any{}, []any{}
	for _, e := range r.Spec.Escalation {
		rule, _ := check.Alert(string(e.Alert))
		when, held := rule.When(), rule.Duration(triage.DefaultThresholds())
		if e.When != "" {
			when, held = string(e.When), e.For
		}
		escalations = append(escalations, output.Fields{
			{Key: "alert", Value: TextOrNil(string(e.Alert))}, {Key: "condition", Value: when}, {Key: "for_seconds", Value: output.Seconds(held)}, {Key: "to", Value: string(e.To)},
		})
	}
	for _, c := range r.Spec.Contacts {
		contacts = append(contacts, output.Fields{
			{Key: "id", Value: string(c.ID)}, {Key: "level", Value: string(c.Level)}, {Key: "name", Value: c.Name}, {Key: "channel", Value: TextOrNil(c.Channel)}, {Key: "about", Value: r.Fill(c.About)},
		})
	}
	for _, q := range r.Spec.Questions {
		by := []any{}
		for _, id := range q.AnsweredBy {
			by = append(by, string(id))
		}
		questions = append(questions, output.Fields{{Key: "id", Value: string(q.ID)}, {Key: "question", Value: r.Fill(q.Ask)}, {Key: "answered_by", Value: by}})
	}
	return escalations, contacts, questions
}

func taskFields(r *runbook.Runbook, tasks []runbook.Task) []any {
	all := []any{}
	for _, t := range tasks {
		all = append(all, output.Fields{{Key: "title", Value: r.Fill(t.Title)}, {Key: "group", Value: TextOrNil(string(t.Group))}, {Key: "where", Value: TextOrNil(t.Where)}})
	}
	return all
}

func stepFields(r *runbook.Runbook, steps []runbook.Step) []any {
	all := []any{}
	for _, s := range steps {
		lines := s.Lines()
		for i := range lines {
			lines[i] = r.Fill(lines[i])
		}
		condition := s.Check
		if s.WaitUntil != "" {
			condition = s.WaitUntil
		}
		all = append(all, output.Fields{
			{Key: "id", Value: string(s.ID)},
			{Key: "title", Value: r.Fill(s.Heading())},
			{Key: "kind", Value: string(s.Kind())},
			{Key: "eta_seconds", Value: output.Seconds(s.Duration())},
			{Key: "commands", Value: textList(lines)},
			{Key: "when", Value: TextOrNil(string(s.When))},
			{Key: "condition", Value: TextOrNil(string(condition))},
			{Key: "gate", Value: TextOrNil(string(s.Gate))},
			{Key: "expect", Value: TextOrNil(string(s.Expect))},
			{Key: "within_seconds", Value: output.Seconds(s.Within)},
			{Key: "rows", Value: textList(s.Claims())},
		})
	}
	return all
}

// ShowLint shows findings. Each error among them is an error of the document too.
func ShowLint(p *output.Printer, schema string, found []runbook.Finding, books int) error {
	rows, errs := make([]Record, len(found)), map[int]error{}
	for i, f := range found {
		rows[i] = Record{
			"file": f.File, "line": f.Line, "column": f.Column, "severity": string(f.Severity), "rule": string(f.Rule),
			"message": f.Message, "hint": TextOrNil(f.Hint), "excerpt": textList(f.Excerpt),
		}
		if f.Severity == runbook.Error {
			errs[i] = f.AsError(fault.KindFound)
		}
	}
	return showRecords(p, output.ListSpec[Record]{
		Schema: schema, Columns: LintColumns(), Human: func(s *output.Sheet, _ []Record) { lintPage(s, found) },
		Empty: fmt.Sprintf("nothing is wrong with %d runbooks", books),
	}, rows, errs)
}

// lintPage shows each warning with its line and a caret below the place. Errors are on stderr in the
// same form, with every format.
func lintPage(s *output.Sheet, found []runbook.Finding) {
	var b strings.Builder
	for _, f := range found {
		if f.Severity == runbook.Error {
			continue
		}
		fmt.Fprintf(&b, "%s: %s: %s (%s)\n", f.Place(), f.Severity, f.Message, f.Rule)
		for _, line := range f.Excerpt {
			b.WriteString("  " + line + "\n")
		}
		if f.Hint != "" {
			b.WriteString("  " + f.Hint + "\n")
		}
	}
	s.Text(b.String())
}

// ShowDraft shows a new document, to people where it was written; path "" = nowhere.
func ShowDraft(p *output.Printer, schema, id, path, text string) error {
	row := Record{"id": id, "path": TextOrNil(path), "text": text}
	return showRecord(p, output.ItemSpec[Record]{Schema: schema, Columns: DraftColumns(), Line: func(Record) string { return "wrote " + path }}, row)
}
