package views

import (
	"errors"
	"fmt"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// CheckRow is one question that a check asks, with its answer.
type CheckRow struct {
	fleet.ProviderCheck
	Minor bool // wrong, but no sandbox is out of reach: a warning to a monitor
}

// ToolCheck is a row about sbx itself.
func ToolCheck(check string, verdict sandbox.Verdict, message, hint string) CheckRow {
	row := CheckRow{}
	row.Check.Check, row.Verdict, row.Message, row.Hint = check, verdict, message, hint
	return row
}

// Inform marks a row as good to know and nothing to repair.
func (r CheckRow) Inform() CheckRow {
	r.Info = true
	return r
}

// subject is whom the row is about, for people.
func (r CheckRow) subject() string {
	if r.Provider == "" {
		return "this tool"
	}
	return "provider " + r.Provider
}

// title is the row in one line.
func (r CheckRow) title() string {
	title := r.Check.Check + ": " + r.Message
	if r.Provider != "" {
		title = r.Provider + ": " + title
	}
	return title
}

// What a row comes to, in the words that people see. A note may have any
// verdict and counts as nothing.
const (
	WordOK      = "ok"
	WordNote    = "note"
	wordUnknown = "unknown"
	WordWarning = "warning"
	WordProblem = "problem"
)

// Word is what the row comes to.
func (r CheckRow) Word() string {
	switch {
	case r.Verdict == sandbox.True:
		return WordOK
	case r.Info:
		return WordNote
	case r.Verdict == sandbox.Unknown:
		return wordUnknown
	case r.Minor:
		return WordWarning
	}
	return WordProblem
}

func (r CheckRow) tone() output.Tone {
	switch r.Word() {
	case WordOK:
		return output.Good
	case WordProblem:
		return output.Bad
	case wordUnknown, WordWarning:
		return output.Warn
	}
	return output.Muted
}

// Err is what the row counts as; nil for what is in order or only informs.
// What could not be asked may be in order: try later.
func (r CheckRow) Err() error {
	var kind fault.Kind
	switch r.Word() {
	case WordProblem, WordWarning:
		kind = fault.KindFound
	case wordUnknown:
		kind = fault.KindUnavailable
	default:
		return nil
	}
	err := fault.New(kind, "%s: %s", r.Check.Check, r.Message).At(r.Provider, "")
	err.Hint = r.Hint
	return err
}

// CheckVerdict decides the exit code: what was found before what could not be
// asked.
func CheckVerdict(rows []CheckRow) error {
	var found, unknown []error
	for _, r := range rows {
		switch err := r.Err(); fault.KindOf(err) {
		case fault.KindNone:
		case fault.KindFound:
			found = append(found, err)
		default:
			unknown = append(unknown, err)
		}
	}
	if len(found) > 0 {
		return errors.Join(found...)
	}
	return errors.Join(unknown...)
}

// FindingColumns are those of a check.
func FindingColumns() []output.Column[CheckRow] {
	return []output.Column[CheckRow]{
		{Name: "check", Value: func(r CheckRow) any { return r.Check.Check }},
		{Name: "provider", Value: func(r CheckRow) any { return r.Provider }},
		{Name: "verdict", Value: func(r CheckRow) any { return r.Verdict }, Text: CheckRow.Word, Tone: CheckRow.tone},
		{Name: "message", Value: func(r CheckRow) any { return r.Message }},
		{Name: "hint", Level: output.Wide, Value: func(r CheckRow) any { return r.Hint }},
	}
}

// checkPage is a section for each subject, with nothing cut off.
func checkPage(s *output.Sheet, rows []CheckRow) {
	for i, r := range rows {
		if i == 0 || r.subject() != rows[i-1].subject() {
			s.Section(r.subject())
		}
		s.FieldTone(r.Check.Check, fmt.Sprintf("%-7s  %s", r.Word(), r.Message), r.tone())
	}
}

// ShowChecks prints a check in every format that a check has. Trouble is what
// kept it from asking everything.
func ShowChecks(p *output.Printer, schema string, rows []CheckRow, trouble error) error {
	if p.Format.Name() == output.Nagios {
		return ShowPlugin(p, rows, trouble)
	}
	list, err := output.NewList(p, output.ListSpec[CheckRow]{Schema: schema, Columns: FindingColumns(), Human: checkPage})
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
	return list.CloseAs(CheckVerdict(rows))
}
