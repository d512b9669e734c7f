package ops

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sbx/internal/alert"
	"sbx/internal/history"
	"sbx/internal/notify"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// The figures of events.
const (
	FigureListed   = "listed"
	FigureActive   = "active"
	FigureStuck    = "stuck"
	FigureUnjudged = "unjudged"
)

// maxEvidence is how much evidence an event keeps of each flag, cause and target.
const maxEvidence = 6

// KeepConclusion puts an event on record, without secrets.
func (e *Env) KeepConclusion(ev history.Event, errs ...error) {
	if e.KeepEvent == nil {
		return
	}
	ev.At, ev.Who, ev.Host = cmp.Or(ev.At, e.Now()), e.Process.User(), e.Process.Host
	ev.Text = e.RedactText(ev.Text)
	for _, err := range errs {
		ev.Errors = append(ev.Errors, e.RedactText(err.Error()))
	}
	if ev.Message != nil {
		ev.Message.Error = e.RedactText(ev.Message.Error)
	}
	for i := range ev.Causes {
		ev.Causes[i].Evidence = e.keptEvidence(ev.Causes[i].Evidence)
	}
	for _, checks := range [][]history.Check{ev.Flags, ev.Targets} {
		for i := range checks {
			checks[i].Evidence = e.keptEvidence(checks[i].Evidence)
		}
	}
	e.KeepEvent(ev)
}

func (e *Env) keptEvidence(evidence []sandbox.Evidence) []sandbox.Evidence {
	kept := slices.Clone(evidence[:min(len(evidence), maxEvidence)])
	for i := range kept {
		kept[i].Value = e.RedactText(kept[i].Value)
	}
	return kept
}

// KeptCauses are causes as the history keeps them.
func KeptCauses(found []triage.Finding) (causes []history.Cause) {
	for _, f := range found {
		causes = append(
			causes,
			history.Cause{
				ID: f.ID, Cause: f.Cause, Title: f.Title, Confidence: f.Confidence, Score: f.Score, Coverage: f.Coverage, Evidence: f.Evidence, WhyNot: f.WhyNot,
			},
		)
	}
	return causes
}

// maxGroups bounds the groups that a text names.
const maxGroups = 5

// GroupsText is "25 stuck at local: busy_loop; 1 stuck at prod: hung_io".
func GroupsText(groups []CauseGroup) string {
	text := ""
	for i, g := range groups {
		if i == maxGroups {
			return text + fmt.Sprintf("; and %d other causes", len(groups)-i)
		}
		if i > 0 {
			text += "; "
		}
		text += fmt.Sprintf("%d stuck at %s: %s", len(g.Refs), g.Provider, CauseWord(triage.Verdict{Cause: g.Cause}))
	}
	return text
}

// KeptFlags are those that hold, each title behind the place where it does.
func KeptFlags(flags []triage.Flag, place string) []history.Check {
	var all []history.Check
	for _, f := range flags {
		if f.Verdict == sandbox.True && f.Severity != triage.Info {
			all = append(all, history.Check{ID: f.ID, Title: place + f.Say, Verdict: f.Verdict, Severity: string(f.Severity), Evidence: f.Evidence})
		}
	}
	return all
}

// AlertChecks are alerts as flags.
func AlertChecks(alerts []alert.Alert) (checks []history.Check) {
	for _, a := range alerts {
		checks = append(checks, history.Check{
			ID: a.Rule.ID, Title: "alert: " + a.Rule.Title + " at " + a.Provider, Verdict: sandbox.True, Severity: string(a.Rule.Severity), Value: string(a.State.Phase),
		})
	}
	return checks
}

// FigureText writes a figure with its unit.
func FigureText(v float64, unit task.Unit) string {
	if unit == task.UnitSeconds {
		return sandbox.FormatDuration(time.Duration(v * float64(time.Second)).Round(time.Second))
	}
	return FormatFigure(v, unit)
}

// keepMessage keeps who got a notification, at the time that it is about; nobody = nothing is kept.
func (e *Env) keepMessage(m notify.Message, to, failed []string, err error) {
	if len(to) == 0 {
		return
	}
	kept := &history.Message{Alert: m.Alert, Severity: m.Severity, Level: m.Level}
	kept.To = slices.DeleteFunc(to, func(name string) bool { return slices.Contains(failed, name) })
	if err != nil {
		kept.Error = err.Error()
	}
	e.KeepConclusion(history.Event{At: m.At, Verb: m.Verb, Text: cmp.Or(m.Title, m.Text), Providers: m.Providers, Message: kept})
}
