package commands

import (
	"errors"
	"fmt"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// checkRow is one question that a check asks, with its answer.
type checkRow struct {
	fleet.ProviderCheck
	minor bool // wrong, but no sandbox is out of reach: a warning to a monitor
}

// toolCheck is a row about sbx itself.
func toolCheck(check string, verdict sandbox.Verdict, message, hint string) checkRow {
	row := checkRow{}
	row.Check.Check, row.Verdict, row.Message, row.Hint = check, verdict, message, hint
	return row
}

// inform marks a row as good to know and nothing to repair.
func (r checkRow) inform() checkRow {
	r.Info = true
	return r
}

// subject is whom the row is about, for people.
func (r checkRow) subject() string {
	if r.Provider == "" {
		return "this tool"
	}
	return "provider " + r.Provider
}

// title is the row in one line.
func (r checkRow) title() string {
	title := r.Check.Check + ": " + r.Message
	if r.Provider != "" {
		title = r.Provider + ": " + title
	}
	return title
}

// What a row comes to, in the words that people see. A note may have any
// verdict and counts as nothing.
const (
	wordOK      = "ok"
	wordNote    = "note"
	wordUnknown = "unknown"
	wordWarning = "warning"
	wordProblem = "problem"
)

// word is what the row comes to.
func (r checkRow) word() string {
	switch {
	case r.Verdict == sandbox.True:
		return wordOK
	case r.Info:
		return wordNote
	case r.Verdict == sandbox.Unknown:
		return wordUnknown
	case r.minor:
		return wordWarning
	}
	return wordProblem
}

func (r checkRow) tone() output.Tone {
	switch r.word() {
	case wordOK:
		return output.Good
	case wordProblem:
		return output.Bad
	case wordUnknown, wordWarning:
		return output.Warn
	}
	return output.Muted
}

// err is what the row counts as; nil for what is in order or only informs.
// What could not be asked may be in order: try later.
func (r checkRow) err() error {
	var kind fault.Kind
	switch r.word() {
	case wordProblem, wordWarning:
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

// checkVerdict decides the exit code: what was found before what could not be
// asked.
func checkVerdict(rows []checkRow) error {
	var found, unknown []error
	for _, r := range rows {
		switch err := r.err(); fault.KindOf(err) {
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

func findingColumns() []output.Column[checkRow] {
	return []output.Column[checkRow]{
		{Name: "check", Value: func(r checkRow) any { return r.Check.Check }},
		{Name: "provider", Value: func(r checkRow) any { return r.Provider }},
		{Name: "verdict", Value: func(r checkRow) any { return r.Verdict }, Text: checkRow.word, Tone: checkRow.tone},
		{Name: "message", Value: func(r checkRow) any { return r.Message }},
		{Name: "hint", Level: output.Wide, Value: func(r checkRow) any { return r.Hint }},
	}
}

// checkPage is a section for each subject, with nothing cut off.
func checkPage(s *output.Sheet, rows []checkRow) {
	for i, r := range rows {
		if i == 0 || r.subject() != rows[i-1].subject() {
			s.Section(r.subject())
		}
		s.FieldTone(r.Check.Check, fmt.Sprintf("%-7s  %s", r.word(), r.Message), r.tone())
	}
}

// showChecks prints a check in every format that a check has. Trouble is what
// kept it from asking everything.
func showChecks(p *output.Printer, schema string, rows []checkRow, trouble error) error {
	if p.Format.Name() == output.Nagios {
		return showPlugin(p, rows, trouble)
	}
	list, err := output.NewList(p, output.ListSpec[checkRow]{Schema: schema, Columns: findingColumns(), Human: checkPage})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := r.err(); err != nil {
			_ = list.AddFailed(r, err) // Close gives the error of stdout
			continue
		}
		_ = list.Add(r) // Close gives the error of stdout
	}
	if trouble != nil {
		list.Fail(trouble)
		return list.Close()
	}
	return list.CloseAs(checkVerdict(rows))
}
