package views

import (
	"fmt"

	"sbx/internal/ops"
	"sbx/internal/output"
)

// checkSubject is whom a check is about, for people.
func checkSubject(r ops.Check) string {
	if r.Provider == "" {
		return "this tool"
	}
	return "provider " + r.Provider
}

// checkTitle is a check in one line.
func checkTitle(r ops.Check) string {
	title := r.Check.Check + ": " + r.Message
	if r.Provider != "" {
		title = r.Provider + ": " + title
	}
	return title
}

func checkTone(r ops.Check) output.Tone {
	switch r.Status() {
	case ops.CheckOK:
		return output.Good
	case ops.CheckProblem:
		return output.Bad
	case ops.CheckUnknown, ops.CheckWarning:
		return output.Warn
	case ops.CheckNote:
	}
	return output.Muted
}

// FindingColumns are those of a check.
func FindingColumns() []output.Column[ops.Check] {
	type row = ops.Check
	return []output.Column[row]{
		{Name: "check", Value: func(r row) any { return r.Check.Check }},
		{Name: "provider", Value: func(r row) any { return r.Provider }},
		{Name: "verdict", Value: func(r row) any { return r.Verdict }, Text: func(r row) string { return string(r.Status()) }, Tone: checkTone},
		{Name: "message", Value: func(r row) any { return r.Message }},
		{Name: "hint", Level: output.Wide, Value: func(r row) any { return r.Hint }},
	}
}

// checkPage is a section for each subject, with nothing cut off.
func checkPage(s *output.Sheet, rows []ops.Check) {
	for i, r := range rows {
		if i == 0 || checkSubject(r) != checkSubject(rows[i-1]) {
			s.Section(checkSubject(r))
		}
		s.FieldTone(r.Check.Check, fmt.Sprintf("%-7s  %s", r.Status(), r.Message), checkTone(r))
	}
}

// ShowChecks prints a check in every format that a check has. Trouble is what
// kept it from asking everything.
func ShowChecks(p *output.Printer, schema string, rows []ops.Check, trouble error) error {
	if p.Format.Name() == output.Nagios {
		return ShowPlugin(p, rows, trouble)
	}
	list, err := output.NewList(p, output.ListSpec[ops.Check]{Schema: schema, Columns: FindingColumns(), Human: checkPage})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := r.Err(); err != nil {
			_ = list.AddFailed(r, err) // Close gives the error of stdout
			continue
		}
		_ = list.Add(r) // Close gives the error of stdout
	}
	if trouble != nil {
		list.Fail(trouble)
		return list.Close()
	}
	return list.CloseAs(ops.CheckVerdict(rows))
}
