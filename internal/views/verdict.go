package views

import (
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// verdictColumns are the judgement of a sandbox, alike in every document; level is that
// of its cause.
func verdictColumns[T any](level output.Level, of func(T) triage.Verdict) []output.Column[T] {
	return []output.Column[T]{
		{Name: "cause", Level: level, Value: func(t T) any { return TextOrNil(string(of(t).Cause)) }},
		{Name: "confidence", Level: output.Extra, Value: func(t T) any { return confidenceOf(of(t)) }},
		{Name: "reason", Level: output.Extra, Value: func(t T) any { return TextOrNil(of(t).Reason) }},
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

// Diagnosis is a whole judgement as one object, for documents in which its words
// have another meaning already. A sandbox that is not there has none.
func Diagnosis(v triage.Verdict) output.Fields {
	return output.Fields{
		{Key: "stuck", Value: v.Stuck},
		{Key: "activity", Value: v.Activity},
		{Key: "cause", Value: TextOrNil(string(v.Cause))},
		{Key: "confidence", Value: confidenceOf(v)},
		{Key: "reason", Value: TextOrNil(v.Reason)},
		{Key: "looked", Value: v.Looked},
	}
}
