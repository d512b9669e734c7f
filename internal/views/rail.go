package views

import (
	"fmt"
	"slices"
	"strings"

	"sbx/internal/check"
	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Rail is a run of a runbook as the dashboard shows it: what it is about to do, does and has found.
type Rail struct {
	ID     string     // of the run; "" = it has none
	Title  string     // with the run and its state
	Causes []RailStep // that it names
	Acts   []RailStep // of the causes and procedures that are done
	Checks []RailStep // of the verification
	Calls  []RailStep // whom to call now, or when

	Endings []sandbox.Ending // what its acts have done to sandboxes
}

// RailStep is a line of a rail.
type RailStep struct {
	State  string // "done", "at work", "missed"
	Over   bool   // it will not change
	Tone   output.Tone
	Title  string
	Answer string   // in one line; "" = none yet
	Took   string   // beside the runbook's time: "2s of 3m"
	Detail []string // what it rests on
}

// RailOf is the rail of a run.
func RailOf(r *engine.Run) Rail {
	rail := Rail{Title: r.Runbook + ": " + r.Title}
	if !r.DryRun {
		rail.ID = r.ID
		rail.Title += "  run " + r.ID
	}
	switch {
	case r.State == engine.RunFailed && r.Kind == fault.KindFound:
		rail.Title += "  over: its verification misses something"
	case r.State != engine.RunRunning:
		rail.Title += "  " + string(r.State)
	}
	for _, s := range r.Steps {
		switch {
		case s.Section == engine.SectionVerification:
			rail.Checks = append(rail.Checks, railStep(s))
		case s.State != engine.NotSelected && (s.Kind == runbook.KindAct || s.Kind == runbook.KindManual):
			rail.Acts = append(rail.Acts, railStep(s))
		}
	}
	for _, s := range r.Acts() {
		for _, o := range s.Act.Outcomes {
			if ref, err := sandbox.ParseRef(o.Ref); err == nil { // a task is none
				rail.Endings = append(rail.Endings, sandbox.Ending{Ref: ref, Outcome: o.Outcome, Reason: o.Reason})
			}
		}
	}
	for _, c := range r.Causes {
		rail.Causes = append(rail.Causes, railCause(c))
	}
	for _, c := range r.Calls {
		if c.Verdict == sandbox.True || c.Alert != "" {
			rail.Calls = append(rail.Calls, railCall(c))
		}
	}
	return rail
}

// railCause is a cause with how sure it is, and why it is not the next one.
func railCause(c engine.Cause) RailStep {
	one := RailStep{
		State: string(c.Confidence), Over: true, Title: triage.PossibleCauseLabel(c.ID), Took: fmt.Sprintf("score %.2f", c.Score),
		Detail: slices.Clone(c.Refs),
	}
	if c.Selected {
		one.Tone = output.Bad
	}
	switch n := len(c.Refs); n {
	case 0:
	case 1:
		one.Answer = c.Refs[0]
	default:
		one.Answer = fmt.Sprintf("%d sandboxes", n)
	}
	if c.WhyNot != "" {
		one.Answer = strings.TrimPrefix(one.Answer+"; "+c.WhyNot, "; ")
	}
	for _, e := range c.Evidence {
		one.Detail = append(one.Detail, evidenceText(e))
	}
	return one
}

// railCall is somebody to call now, or when: an alert says for how long it has held.
func railCall(c engine.Call) RailStep {
	one := RailStep{State: "call", Tone: output.Bad, Title: c.Name, Answer: alertTitle(c.Alert), Detail: c.Evidence}
	if c.Verdict != sandbox.True {
		one.State, one.Tone = "call?", output.Muted
	}
	if len(c.Evidence) > 0 {
		one.Answer = c.Evidence[0]
	}
	return one
}

// alertTitle is an alert in words; "" = it is none.
func alertTitle(id string) string {
	rule, _ := check.Alert(id)
	return rule.Title
}

func railStep(s engine.Step) RailStep {
	one := RailStep{Title: strings.TrimSpace(s.Number + " " + s.Title), Over: s.State.IsOver(), Detail: RunbookStepLines(s)}
	one.State, one.Tone = railState(s)
	switch {
	case len(s.Answers) > 0:
		one.Answer = s.Answers[0].Question + " " + s.Answers[0].Answer
	case s.Act != nil && len(s.Act.Outcomes) > 0:
		one.Answer = fmt.Sprintf("%d of %d done", len(s.Act.Outcomes), len(s.Act.Targets))
	case s.Reason != "":
		one.Answer = s.Reason
	case len(s.Evidence) > 0:
		one.Answer = s.Evidence[0]
	}
	if s.Act != nil {
		one.Detail = append(one.Detail, "the same by hand: "+s.Act.Line)
		for _, t := range s.Act.Targets {
			one.Detail = append(one.Detail, "  "+t.Ref+": "+t.Reason)
		}
	}
	if !s.EndedAt.IsZero() && s.ETA > 0 {
		one.Took = sandbox.FormatElapsed(s.Took) + " of " + sandbox.FormatDuration(s.ETA)
	} else if s.ETA > 0 {
		one.Took = "of " + sandbox.FormatDuration(s.ETA)
	}
	return one
}

// railState is a step in one word: what a check found, else how far it is.
func railState(s engine.Step) (word string, tone output.Tone) {
	check := s.Kind == runbook.KindCheck
	switch {
	case s.State == engine.Running:
		return "at work", output.Warn
	case s.State == engine.Pending:
		return "open", output.Muted
	case s.State == engine.Failed:
		return "failed", output.Bad
	case s.State == engine.Skipped:
		return "skipped", output.Muted
	case s.Verdict == sandbox.Unknown:
		return "not known", output.Warn
	case check && s.Verdict == sandbox.False:
		return "missed", output.Bad
	case check:
		return "holds", output.Good
	}
	return "done", output.Good
}
