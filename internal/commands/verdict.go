package commands

import (
	"fmt"

	"sbx/internal/fleet"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// judging is how every verb of this room judges sandboxes; look asks those themselves
// that their record leaves open.
func (e *Env) judging(look bool) fleet.Judging {
	return fleet.Judging{Now: e.now, Thresholds: e.thresholds, Look: look}
}

// row is a sandbox with the judgement that its record alone allows.
func (d *Deps) row(s sandbox.Sandbox) sandboxRow {
	return sandboxRow{Sandbox: s, Verdict: triage.Judge(s, triage.Signals{}, d.thresholds(s), d.now()), now: d.now()}
}

// judgedRow is a sandbox with its judgement.
func (d *Deps) judgedRow(j fleet.Judged) sandboxRow {
	return sandboxRow{Sandbox: j.Sandbox, Verdict: j.Verdict, now: d.now()}
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

// failedLooks sums up why some of what was looked at could not be judged.
func failedLooks(judged []fleet.Judged) []error {
	var unjudged []fleet.Observation
	for _, j := range judged {
		if j.Seen != nil && j.Verdict.Unjudged() {
			unjudged = append(unjudged, *j.Seen)
		}
	}
	return fleet.FailedLooks(unjudged)
}

// census counts what judgements say, so that no figure hides what nobody has judged.
type census struct{ stuck, unjudged, unlooked int64 }

func (c *census) add(v triage.Verdict) {
	switch {
	case v.Stuck == sandbox.True:
		c.stuck++
	case v.Unjudged():
		c.unjudged++
		if v.NeedsLook() {
			c.unlooked++
		}
	}
}

func (c *census) join(o census) {
	c.stuck, c.unjudged, c.unlooked = c.stuck+o.stuck, c.unjudged+o.unjudged, c.unlooked+o.unlooked
}

// remark says what was not judged, and what would judge it; "" = everything was.
func (c *census) remark(look string) string {
	switch {
	case c.unjudged == 0:
		return ""
	case c.unlooked > 0:
		return fmt.Sprintf("%d stuck, %d not judged: `%s` looks whether they work", c.stuck, c.unjudged, look)
	}
	return fmt.Sprintf("%d stuck, %d not judged: no source shows whether they work", c.stuck, c.unjudged)
}
