package views

import (
	"sbx/internal/fleet"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// BulkEndingLine is one ending of a bulk run for people; a sandbox that stays has its reason.
func BulkEndingLine(e sandbox.Ending) string {
	if e.Outcome == sandbox.OutcomeChanged || e.Outcome == sandbox.OutcomeSkipped {
		return string(e.Outcome) + " " + e.Ref.String() + ": " + e.Reason
	}
	return EndingLine(e)
}

// AddEnding prints one ending, with its trouble beside it.
func AddEnding(list *output.List[sandbox.Ending], e sandbox.Ending, named bool) {
	if err := fleet.Verdict([]sandbox.Ending{e}, named); err != nil {
		_ = list.AddFailed(e, err) // Close gives the error of stdout
		return
	}
	_ = list.Add(e) // Close gives the error of stdout
}

// EndingColumns are those of what became of each sandbox.
func EndingColumns() []output.Column[sandbox.Ending] {
	type row = sandbox.Ending
	return []output.Column[row]{
		{Name: "ref", Value: func(e row) any { return e.Ref.String() }},
		{Name: "outcome", Value: func(e row) any { return e.Outcome }},
		{Name: "reason", Value: func(e row) any { return e.Reason }},
		{Name: "duration_seconds", Head: "TOOK", Value: func(e row) any { return output.Seconds(e.Duration) }},
		{Name: "evidence", Level: output.Extra, Value: func(e row) any { return EvidenceList(e.Evidence) }},
	}
}

// EndingLine is one ending for people. The reason of a failed ending is in the error beside it.
func EndingLine(e sandbox.Ending) string {
	line := string(e.Outcome) + " " + e.Ref.String()
	switch {
	case e.Outcome == sandbox.OutcomeVerified:
		return line + " in " + sandbox.FormatElapsed(e.Duration)
	case e.Reason != "" && e.Outcome == sandbox.OutcomeAlreadyGone:
		return line + ": " + e.Reason
	}
	return line
}
