package views

import (
	"io"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/history"
	"sbx/internal/incident"
	"sbx/internal/ops/incidents"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// ReportFormat is a form of a report for people.
type ReportFormat string

// The closed list.
const (
	ReportMarkdown ReportFormat = "markdown"
	ReportSlack    ReportFormat = "slack"
)

// ReportFormats are all forms.
func ReportFormats() []ReportFormat { return []ReportFormat{ReportMarkdown, ReportSlack} }

// IncidentReportColumns are those of `sbx incident report`.
func IncidentReportColumns() []output.Column[Record] {
	return recordColumns("id title state closed_as severity alert runbook runbook_title providers host started_by reported_at moments timeline evidence causes figures acts verification escalations steps eta_seconds took_seconds questions action_items problems")
}

// ShowIncidentReport prints a report: the text of a form for people, or the document.
func ShowIncidentReport(p *output.Printer, schema string, r *incidents.IncidentReport, form ReportFormat) error {
	if p.Format.Name() == output.Table && len(p.Columns) == 0 {
		text := IncidentMarkdown(r)
		if form == ReportSlack {
			text = IncidentSlack(r)
		}
		_, err := io.WriteString(p.Stdout(), text)
		return err
	}
	return showRecord(p, output.ItemSpec[Record]{Schema: schema, Columns: IncidentReportColumns()}, reportRecord(r))
}

func reportRecord(r *incidents.IncidentReport) Record {
	i := r.Incident
	var eta, took any
	if last := lastRun(r.Steps); slices.ContainsFunc(last, wasDone) {
		planned, actual := stepTimes(last)
		eta, took = output.Seconds(planned), output.Seconds(actual)
	}
	return Record{
		"id": i.ID, "title": TextOrNil(i.Start.Title), "state": string(i.State), "closed_as": TextOrNil(string(i.As)), "severity": TextOrNil(r.Severity),
		"alert": TextOrNil(r.Alert), "runbook": TextOrNil(r.Plan.Runbook), "runbook_title": TextOrNil(r.Plan.Title), "providers": textList(i.Start.Providers),
		"host": i.StartedBy.Host, "started_by": i.StartedBy.Who, "reported_at": output.Time(r.At),
		"moments":      eachFields(r.Moments, func(m incidents.Moment) output.Fields { return momentFields(r, m) }),
		"timeline":     eachFields(r.Timeline, eventFields),
		"evidence":     eachFields(r.Flags, flagFields),
		"causes":       eachFields(r.Causes, seenCauseFields),
		"figures":      eachFields(r.Figures, figureFields),
		"acts":         eachFields(r.Acts, actFields),
		"verification": eachFields(r.Checks, checkedFields),
		"escalations":  eachFields(r.Escalations, escalationFields),
		"steps":        eachFields(r.Steps, reportStepFields),
		"eta_seconds":  eta, "took_seconds": took,
		"questions":    eachFields(r.Answers, answerFields),
		"action_items": eachFields(r.Tasks, reportTaskFields),
		"problems":     textList(r.Problems),
	}
}

// eachFields are the fields of each item.
func eachFields[T any](items []T, fields func(T) output.Fields) []any {
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = fields(item)
	}
	return all
}

// stepTimes sums up the steps that were done: the times for a person beside those that they took.
func stepTimes(steps []incident.Step) (eta, took time.Duration) {
	for _, s := range steps {
		if wasDone(s) {
			eta, took = eta+s.ETA, took+s.Took
		}
	}
	return eta, took
}

func wasDone(s incident.Step) bool { return s.State == "done" || s.State == "failed" }

func momentFields(r *incidents.IncidentReport, m incidents.Moment) output.Fields {
	var after any
	if detected := r.Moment(incident.MilestoneDetected).At; !m.At.IsZero() && !detected.IsZero() {
		after = output.Seconds(m.At.Sub(detected))
	}
	return output.Fields{
		{Key: "milestone", Value: string(m.Milestone)},
		{Key: "at", Value: output.Time(m.At)},
		{Key: "seconds_after_detection", Value: after},
		{Key: "source", Value: TextOrNil(m.Source)},
		{Key: "who", Value: TextOrNil(m.Who)},
	}
}

func eventFields(e incidents.IncidentEvent) output.Fields {
	figures, acts, milestone := output.Fields{}, []any{}, any(nil)
	if e.Seen != nil {
		for _, f := range e.Seen.Figures {
			figures = append(figures, output.Field{Key: f.Name, Value: numberValue(f.Value)})
		}
	}
	for _, a := range e.Acts {
		acts = append(acts, output.Fields{
			{Key: "ref", Value: a.Ref.String()},
			{Key: "action", Value: a.Action},
			{Key: "reason", Value: TextOrNil(joinKnown("; ", a.Reason, a.Detail))},
			{Key: "outcome", Value: outcomeValue(a)},
			{Key: "run_id", Value: a.Run},
		})
	}
	if e.Said != nil {
		milestone = TextOrNil(string(e.Said.Milestone))
	}
	return output.Fields{
		{Key: "at", Value: output.Time(e.At)},
		{Key: "kind", Value: e.Kind},
		{Key: "actor", Value: e.Who},
		{Key: "host", Value: e.Host},
		{Key: "text", Value: EventText(e)},
		{Key: "verb", Value: TextOrNil(e.Verb)},
		{Key: "figures", Value: figures},
		{Key: "acts", Value: acts},
		{Key: "milestone", Value: milestone},
	}
}

func numberValue(v *int64) any {
	if v == nil {
		return nil
	}
	return *v
}

func reportEvidence(all []sandbox.Evidence) []any {
	list := make([]any, 0, len(all))
	for _, e := range all {
		list = append(list, output.Fields{
			{Key: "what", Value: e.What}, {Key: "value", Value: e.Value}, {Key: "source", Value: e.Source}, {Key: "at", Value: output.Time(e.At)},
		})
	}
	return list
}

func flagFields(c incidents.SeenCheck) output.Fields {
	return output.Fields{
		{Key: "id", Value: c.ID},
		{Key: "what", Value: c.Title},
		{Key: "severity", Value: TextOrNil(c.Severity)},
		{Key: "seen_at", Value: output.Time(c.At)},
		{Key: "verb", Value: c.Verb},
		{Key: "evidence", Value: reportEvidence(c.Evidence)},
	}
}

func seenCauseFields(c incidents.SeenCause) output.Fields {
	return output.Fields{
		{Key: "id", Value: c.ID},
		{Key: "title", Value: c.Title},
		{Key: "confidence", Value: string(c.Confidence)},
		{Key: "score", Value: c.Score},
		{Key: "coverage", Value: c.Coverage},
		{Key: "seen_at", Value: output.Time(c.At)},
		{Key: "verb", Value: c.Verb},
		{Key: "evidence", Value: reportEvidence(c.Evidence)},
		{Key: "why_not", Value: TextOrNil(c.WhyNot)},
	}
}

func figureFields(f incidents.SeenFigure) output.Fields {
	return output.Fields{
		{Key: "name", Value: f.Name},
		{Key: "before", Value: numberValue(f.Before)},
		{Key: "before_at", Value: output.Time(f.BeforeAt)},
		{Key: "after", Value: numberValue(f.After)},
		{Key: "after_at", Value: output.Time(f.AfterAt)},
	}
}

func actFields(a cleanup.Act) output.Fields {
	return output.Fields{
		{Key: "at", Value: output.Time(a.At)},
		{Key: "actor", Value: a.Actor.Who},
		{Key: "host", Value: a.Actor.Host},
		{Key: "verb", Value: a.Verb},
		{Key: "action", Value: a.Action},
		{Key: "ref", Value: a.Ref.String()},
		{Key: "name", Value: TextOrNil(a.Name)},
		{Key: "reason", Value: TextOrNil(a.Reason)},
		{Key: "outcome", Value: outcomeValue(a)},
		{Key: "settled_at", Value: output.Time(a.SettledAt)},
		{Key: "run_id", Value: a.Run},
	}
}

func checkedFields(c incidents.SeenCheck) output.Fields {
	return output.Fields{
		{Key: "id", Value: c.ID},
		{Key: "title", Value: c.Title},
		{Key: "verdict", Value: string(c.Verdict)},
		{Key: "value", Value: TextOrNil(c.Value)},
		{Key: "target", Value: TextOrNil(c.Target)},
		{Key: "checked_at", Value: output.Time(c.At)},
		{Key: "evidence", Value: reportEvidence(c.Evidence)},
	}
}

func escalationFields(e history.Event) output.Fields {
	m := e.Message
	return output.Fields{
		{Key: "at", Value: output.Time(e.At)},
		{Key: "why", Value: e.Text},
		{Key: "alert", Value: TextOrNil(m.Alert)},
		{Key: "severity", Value: TextOrNil(m.Severity)},
		{Key: "level", Value: TextOrNil(m.Level)},
		{Key: "to", Value: textList(m.To)},
		{Key: "error", Value: TextOrNil(m.Error)},
	}
}

func reportStepFields(s incident.Step) output.Fields {
	return output.Fields{
		{Key: "id", Value: s.ID},
		{Key: "title", Value: s.Title},
		{Key: "kind", Value: s.Kind},
		{Key: "state", Value: s.State},
		{Key: "verdict", Value: TextOrNil(s.Verdict)},
		{Key: "text", Value: TextOrNil(s.Text)},
		{Key: "answer", Value: TextOrNil(s.Answer)},
		{Key: "eta_seconds", Value: output.Seconds(s.ETA)},
		{Key: "took_seconds", Value: output.Seconds(s.Took)},
		{Key: "began_at", Value: output.Time(s.Began)},
		{Key: "ended_at", Value: output.Time(s.Ended)},
		{Key: "run_id", Value: TextOrNil(s.Run)},
	}
}

func answerFields(a incidents.ReportAnswer) output.Fields {
	return output.Fields{
		{Key: "id", Value: a.ID},
		{Key: "question", Value: a.Ask},
		{Key: "answer", Value: TextOrNil(a.Answer)},
		{Key: "source", Value: TextOrNil(a.Source)},
		{Key: "needs_person", Value: a.NeedsPerson},
	}
}

func reportTaskFields(t incidents.ReportTask) output.Fields {
	return output.Fields{
		{Key: "title", Value: t.Title},
		{Key: "group", Value: TextOrNil(t.Group)},
		{Key: "cause", Value: TextOrNil(t.Cause)},
		{Key: "where", Value: TextOrNil(t.Where)},
		{Key: "needs_person", Value: t.Where == ""},
	}
}
