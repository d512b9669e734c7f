package commands

import (
	"sbx/internal/fleet"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// row is a sandbox with the judgement that its record alone allows.
func (d *Deps) row(s sandbox.Sandbox) sandboxRow {
	return sandboxRow{Sandbox: s, Verdict: triage.Judge(s, triage.Signals{}, d.Thresholds(s), d.Now()), now: d.Now()}
}

// judgedRow is a sandbox with its judgement.
func (d *Deps) judgedRow(j fleet.Judged) sandboxRow {
	return sandboxRow{Sandbox: j.Sandbox, Verdict: j.Verdict, now: d.Now()}
}

// verdictColumns are the judgement of a sandbox, alike in every document; level is that
// of its cause.
func verdictColumns[T any](level output.Level, of func(T) triage.Verdict) []output.Column[T] {
	return []output.Column[T]{
		{Name: "cause", Level: level, Value: func(t T) any { return textOrNil(string(of(t).Cause)) }},
		{Name: "confidence", Level: output.Extra, Value: func(t T) any { return confidenceOf(of(t)) }},
		{Name: "reason", Level: output.Extra, Value: func(t T) any { return textOrNil(of(t).Reason) }},
		{Name: "looked", Level: output.Extra, Value: func(t T) any { return of(t).Looked }},
	}
}

// confidenceOf is that of the cause; nil where nothing is wrong.
func confidenceOf(v triage.Verdict) any {
	if v.Cause == sandbox.CauseNone {
		return nil
	}
	return string(v.Confidence)
}

// diagnosisOf is a whole judgement as one object, for documents in which its words
// have another meaning already. A sandbox that is not there has none.
func diagnosisOf(v triage.Verdict) output.Fields {
	return output.Fields{
		{Key: "stuck", Value: v.Stuck},
		{Key: "activity", Value: v.Activity},
		{Key: "cause", Value: textOrNil(string(v.Cause))},
		{Key: "confidence", Value: confidenceOf(v)},
		{Key: "reason", Value: textOrNil(v.Reason)},
		{Key: "looked", Value: v.Looked},
	}
}
