package views

import (
	"cmp"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/history"
	"sbx/internal/incident"
	"sbx/internal/ops/incidents"
	"sbx/internal/output"
)

// IncidentItem is one incident in short.
type IncidentItem struct {
	ID              *string    `json:"id" table:",whole"`         // Its id; null where none is open.
	State           string     `json:"state" table:""`            // open, closed, damaged (nothing can be added to its record), or none.
	Severity        *string    `json:"severity" table:""`         // critical or warning; null where it is not known.
	Title           *string    `json:"title" table:""`            // What it is about.
	StartedAt       *time.Time `json:"started_at" table:""`       // When it was started.
	DurationSeconds *float64   `json:"duration_seconds" table:""` // From its start to its end, or until now.
	StartedBy       *string    `json:"started_by" table:""`       // Who started it.
	Alert           *string    `json:"alert" table:",wide"`       // The alert that it is about.
	Runbook         *string    `json:"runbook" table:",wide"`     // The runbook that is followed.
	Providers       []string   `json:"providers" table:",wide"`   // The profiles that it is about; empty = all.
	ClosedAt        *time.Time `json:"closed_at" table:",wide"`   // When it was closed.
	ClosedAs        *string    `json:"closed_as" table:",wide"`   // How it ended: resolved, false-alarm or duplicate.
	Events          int        `json:"events" table:",wide"`      // How many lines its own record has: its start, acknowledgements, notes and end.
	Host            *string    `json:"host" table:",wide"`        // The host on which it was started.
	Problem         *string    `json:"problem" table:",wide"`     // Why its record cannot be trusted, or cannot be read further; null where it can.
}

// IncidentShownItem is one incident with its whole timeline.
type IncidentShownItem struct {
	IncidentItem

	Timeline []IncidentEventItem `json:"timeline" table:""` // What happened, by time.
}

// IncidentEventItem is one thing that happened.
type IncidentEventItem struct {
	At        time.Time              `json:"at"`        // When.
	Kind      string                 `json:"kind"`      // started, acknowledged, note, seen, acted, verified, step, escalated or closed.
	Actor     string                 `json:"actor"`     // Who did it.
	Host      string                 `json:"host"`      // On which host.
	Text      string                 `json:"text"`      // One line about it.
	Verb      *string                `json:"verb"`      // The verb of sbx; null for none.
	Figures   output.Ordered[*int64] `json:"figures"`   // What was counted; null = it could not be.
	Acts      []IncidentActItem      `json:"acts"`      // What one run did to sandboxes.
	Milestone *string                `json:"milestone"` // The milestone that it is, as a person says: detected, acknowledged, mitigated or verified.
}

// IncidentActItem is what was done to one sandbox, or to its record.
type IncidentActItem struct {
	Ref     string  `json:"ref"`     // The sandbox.
	Action  string  `json:"action"`  // terminate, delete, or what reconcile did to a record.
	Reason  *string `json:"reason"`  // Why.
	Outcome *string `json:"outcome"` // The outcome; null where none is known.
	RunID   *string `json:"run_id"`  // The run, as in `sbx audit`.
}

// IncidentReportItem is all that is known of an incident.
type IncidentReportItem struct {
	ID           string                   `json:"id" table:""`            // Its id.
	Title        *string                  `json:"title" table:""`         // What it is about.
	State        string                   `json:"state" table:""`         // open, closed or damaged.
	ClosedAs     *string                  `json:"closed_as" table:""`     // How it ended: resolved, false-alarm or duplicate.
	Severity     *string                  `json:"severity" table:""`      // critical or warning; null where it is not known.
	Alert        *string                  `json:"alert" table:""`         // The alert that it is about; null where it is not known.
	Runbook      *string                  `json:"runbook" table:""`       // The runbook whose questions and actions these are.
	RunbookTitle *string                  `json:"runbook_title" table:""` // Its title.
	Providers    []string                 `json:"providers" table:""`     // The profiles that it is about; empty = all.
	Host         string                   `json:"host" table:""`          // The host on which it was started.
	StartedBy    string                   `json:"started_by" table:""`    // Who started it.
	ReportedAt   time.Time                `json:"reported_at" table:""`   // When this report was made.
	Moments      []MilestoneItem          `json:"moments" table:""`       // The milestones: detected, acknowledged, mitigated, verified and closed, in this order.
	Timeline     []IncidentEventItem      `json:"timeline" table:""`      // What happened, by time.
	Evidence     []IncidentFlagItem       `json:"evidence" table:""`      // The flags and alerts that held, each as it was last seen.
	Causes       []IncidentCauseItem      `json:"causes" table:""`        // The causes that were found, of all sandboxes or of one, each as it was surest; the likeliest first.
	Figures      []IncidentFigureItem     `json:"figures" table:""`       // What was counted of all sandboxes, first and last.
	Acts         []IncidentDoneItem       `json:"acts" table:""`          // Every act in the time of the incident, from the journals of all verbs; the oldest first.
	Verification []IncidentTargetItem     `json:"verification" table:""`  // The targets, each as it was last checked.
	Escalations  []IncidentEscalationItem `json:"escalations" table:""`   // Who was notified.
	Steps        []IncidentStepItem       `json:"steps" table:""`         // The steps of the runbook that were run.
	ETASeconds   *float64                 `json:"eta_seconds" table:""`   // How long the steps that were done in the last run take a person; null without any.
	TookSeconds  *float64                 `json:"took_seconds" table:""`  // How long they took.
	Questions    []IncidentQuestionItem   `json:"questions" table:""`     // The questions of the runbook, answered as far as the record does.
	ActionItems  []IncidentTaskItem       `json:"action_items" table:""`  // What is to be done.
	Problems     []string                 `json:"problems" table:""`      // What is missing from the report, and why.
}

// MilestoneItem is when a milestone was reached.
type MilestoneItem struct {
	Milestone             string     `json:"milestone"`               // detected, acknowledged, mitigated, verified or closed.
	At                    *time.Time `json:"at"`                      // When; null = not known.
	SecondsAfterDetection *float64   `json:"seconds_after_detection"` // The time since it was detected; null where one of both is not known.
	Source                *string    `json:"source"`                  // How that is known, or why it is not.
	Who                   *string    `json:"who"`                     // Who did it, or said so.
}

// IncidentFlagItem is a sign that something is wrong.
type IncidentFlagItem struct {
	ID       string         `json:"id"`       // The id of the requirement or of the alert.
	What     string         `json:"what"`     // What is wrong.
	Severity *string        `json:"severity"` // critical or warning.
	SeenAt   time.Time      `json:"seen_at"`  // When it was last seen.
	Verb     string         `json:"verb"`     // The verb that saw it.
	Evidence []EvidenceItem `json:"evidence"` // What shows it.
}

// IncidentCauseItem is one cause.
type IncidentCauseItem struct {
	ID         string         `json:"id"`         // Its id, as in a diagnosis.
	Title      string         `json:"title"`      // What it is called.
	Confidence string         `json:"confidence"` // certain, probable, hint or unknown.
	Score      float64        `json:"score"`      // 0 to 1: the symptoms that were seen, of those that are known.
	Coverage   float64        `json:"coverage"`   // 0 to 1: the symptoms that are known, of all.
	SeenAt     time.Time      `json:"seen_at"`    // When it was seen so.
	Verb       string         `json:"verb"`       // The verb that saw it.
	Evidence   []EvidenceItem `json:"evidence"`   // What shows it.
	WhyNot     *string        `json:"why_not"`    // Why it is not the first; null where it is.
}

// IncidentFigureItem is a figure before and after.
type IncidentFigureItem struct {
	Name     string     `json:"name"`      // What is counted.
	Before   *int64     `json:"before"`    // As it was last counted before the first act, or first where nothing was done; null = not known.
	BeforeAt *time.Time `json:"before_at"` // The time of that.
	After    *int64     `json:"after"`     // As it was last counted since, by the same kind of look at the same providers; null = not known.
	AfterAt  *time.Time `json:"after_at"`  // The time of that.
}

// IncidentDoneItem is one act, as in `sbx audit`.
type IncidentDoneItem struct {
	At        time.Time  `json:"at"`         // When it was requested.
	Actor     string     `json:"actor"`      // Who requested it.
	Host      string     `json:"host"`       // On which host.
	Verb      string     `json:"verb"`       // With which verb.
	Action    string     `json:"action"`     // terminate, delete, or what reconcile did to a record.
	Ref       string     `json:"ref"`        // The sandbox.
	Name      *string    `json:"name"`       // Its name.
	Reason    *string    `json:"reason"`     // Why.
	Outcome   *string    `json:"outcome"`    // The outcome; null where no journal knows it.
	SettledAt *time.Time `json:"settled_at"` // When the outcome was seen.
	RunID     string     `json:"run_id"`     // The run.
}

// IncidentTargetItem is one target of `sbx verify`.
type IncidentTargetItem struct {
	ID        string         `json:"id"`         // The id of the requirement.
	Title     string         `json:"title"`      // What is compared.
	Verdict   string         `json:"verdict"`    // Whether it is met.
	Value     *string        `json:"value"`      // The figure; null = not known.
	Target    *string        `json:"target"`     // The bound.
	CheckedAt time.Time      `json:"checked_at"` // When it was checked.
	Evidence  []EvidenceItem `json:"evidence"`   // What it rests on.
}

// IncidentEscalationItem is a notification, or somebody to call.
type IncidentEscalationItem struct {
	At       time.Time `json:"at"`       // When.
	Why      string    `json:"why"`      // Why.
	Alert    *string   `json:"alert"`    // The alert; null for none.
	Severity *string   `json:"severity"` // critical or warning.
	Level    *string   `json:"level"`    // Who acts first.
	To       []string  `json:"to"`       // The services that got it, or who is to be called.
	Error    *string   `json:"error"`    // Why it was not sent; null where it was.
}

// IncidentStepItem is one step of a runbook.
type IncidentStepItem struct {
	ID          string     `json:"id"`           // Its id.
	Title       string     `json:"title"`        // Its title.
	Kind        string     `json:"kind"`         // collect, check, manual, confirm, act or wait_until.
	State       string     `json:"state"`        // done, failed, skipped or not_selected.
	Verdict     *string    `json:"verdict"`      // true, false or unknown; null where it has none.
	Text        *string    `json:"text"`         // What it found, or why it was left out.
	Answer      *string    `json:"answer"`       // What a person answered.
	ETASeconds  float64    `json:"eta_seconds"`  // How long it takes a person.
	TookSeconds float64    `json:"took_seconds"` // How long it took.
	BeganAt     *time.Time `json:"began_at"`     // When it began.
	EndedAt     *time.Time `json:"ended_at"`     // When it ended.
	RunID       *string    `json:"run_id"`       // The run of the runbook.
}

// IncidentQuestionItem is a question of the runbook.
type IncidentQuestionItem struct {
	ID          string  `json:"id"`           // Its id.
	Question    string  `json:"question"`     // The question.
	Answer      *string `json:"answer"`       // The answer; null = none is on record.
	Source      *string `json:"source"`       // Who or what answers it.
	NeedsPerson bool    `json:"needs_person"` // True: a person has to answer it.
}

// IncidentTaskItem is something to do.
type IncidentTaskItem struct {
	Title       string  `json:"title"`        // What to do.
	Group       *string `json:"group"`        // What it improves: detection, code or docs.
	Cause       *string `json:"cause"`        // The cause for which it is to be done; null = whatever the cause.
	Where       *string `json:"where"`        // The command of sbx that does it already.
	NeedsPerson bool    `json:"needs_person"` // True: a person has to do it.
}

func incidentItem(i *incident.Incident, now time.Time) IncidentItem {
	item := IncidentItem{
		ID: orNil(i.ID), State: string(i.State), Severity: orNil(i.Start.Severity), Title: orNil(i.Start.Title), StartedAt: output.Time(i.StartedAt),
		StartedBy: orNil(i.StartedBy.Who), Alert: orNil(i.Start.Alert), Runbook: orNil(i.Start.Runbook), Providers: listed(i.Start.Providers),
		ClosedAt: output.Time(i.ClosedAt), ClosedAs: orNil(string(i.As)), Events: len(i.Events), Host: orNil(i.StartedBy.Host), Problem: orNil(i.Problem),
	}
	if !i.StartedAt.IsZero() {
		item.DurationSeconds = new(output.Seconds(cmp.Or(i.ClosedAt, now).Sub(i.StartedAt)))
	}
	return item
}

// noIncident is the document where none is open.
func noIncident() IncidentItem { return IncidentItem{State: "none", Providers: []string{}} }

// knownItem is an incident with what the records of its time add to it.
func knownItem(r *incidents.IncidentReport) IncidentItem {
	item := incidentItem(r.Incident, r.At)
	item.Severity, item.Alert = orNil(r.Severity), orNil(r.Alert)
	return item
}

func shownItem(r *incidents.IncidentReport) IncidentShownItem {
	return IncidentShownItem{knownItem(r), each(r.Timeline, eventItem)}
}

func reportItem(r *incidents.IncidentReport) IncidentReportItem {
	i := r.Incident
	item := IncidentReportItem{
		ID: i.ID, Title: orNil(i.Start.Title), State: string(i.State), ClosedAs: orNil(string(i.As)), Severity: orNil(r.Severity), Alert: orNil(r.Alert),
		Runbook: orNil(r.Plan.Runbook), RunbookTitle: orNil(r.Plan.Title), Providers: listed(i.Start.Providers), Host: i.StartedBy.Host, StartedBy: i.StartedBy.Who,
		ReportedAt: r.At,
		Moments:    each(r.Moments, func(m incidents.Moment) MilestoneItem { return milestoneItem(r, m) }),
		Timeline:   each(r.Timeline, eventItem), Evidence: each(r.Flags, flagItem), Causes: each(r.Causes, seenCauseItem), Figures: each(r.Figures, seenFigureItem),
		Acts: each(r.Acts, doneItem), Verification: each(r.Checks, targetItem), Escalations: each(r.Escalations, escalationItem), Steps: each(r.Steps, reportStepItem),
		Questions: each(r.Answers, answerItem), ActionItems: each(r.Tasks, reportTaskItem), Problems: listed(r.Problems),
	}
	if last := lastRun(r.Steps); slices.ContainsFunc(last, wasDone) {
		planned, actual := stepTimes(last)
		item.ETASeconds, item.TookSeconds = new(output.Seconds(planned)), new(output.Seconds(actual))
	}
	return item
}

// each makes a document of each item; a list without any is empty, not null.
func each[T, D any](items []T, document func(T) D) []D {
	all := make([]D, len(items))
	for i, item := range items {
		all[i] = document(item)
	}
	return all
}

// listed is a list that is never null.
func listed(texts []string) []string { return each(texts, func(text string) string { return text }) }

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

func milestoneItem(r *incidents.IncidentReport, m incidents.Moment) MilestoneItem {
	item := MilestoneItem{Milestone: string(m.Milestone), At: output.Time(m.At), Source: orNil(m.Source), Who: orNil(m.Who)}
	if detected := r.Moment(incident.MilestoneDetected).At; !m.At.IsZero() && !detected.IsZero() {
		item.SecondsAfterDetection = new(output.Seconds(m.At.Sub(detected)))
	}
	return item
}

func eventItem(e incidents.IncidentEvent) IncidentEventItem {
	item := IncidentEventItem{At: e.At, Kind: e.Kind, Actor: e.Who, Host: e.Host, Text: EventText(e), Verb: orNil(e.Verb), Figures: output.Ordered[*int64]{}, Acts: each(e.Acts, actOfEvent)}
	if e.Seen != nil {
		for _, f := range e.Seen.Figures {
			figure := output.Field{Key: f.Name}
			if f.Value != nil {
				figure.Value = *f.Value
			}
			item.Figures = append(item.Figures, figure)
		}
	}
	if e.Said != nil {
		item.Milestone = orNil(string(e.Said.Milestone))
	}
	return item
}

func actOfEvent(a cleanup.Act) IncidentActItem {
	return IncidentActItem{a.Ref.String(), a.Action, orNil(joinKnown("; ", a.Reason, a.Detail)), orNil(string(a.Outcome)), &a.Run}
}

func flagItem(c incidents.SeenCheck) IncidentFlagItem {
	return IncidentFlagItem{c.ID, c.Title, orNil(c.Severity), c.At, c.Verb, EvidenceList(c.Evidence)}
}

func seenCauseItem(c incidents.SeenCause) IncidentCauseItem {
	return IncidentCauseItem{c.ID, c.Title, string(c.Confidence), c.Score, c.Coverage, c.At, c.Verb, EvidenceList(c.Evidence), orNil(c.WhyNot)}
}

func seenFigureItem(f incidents.SeenFigure) IncidentFigureItem {
	return IncidentFigureItem{f.Name, f.Before, output.Time(f.BeforeAt), f.After, output.Time(f.AfterAt)}
}

func doneItem(a cleanup.Act) IncidentDoneItem {
	return IncidentDoneItem{
		At: a.At, Actor: a.Actor.Who, Host: a.Actor.Host, Verb: a.Verb, Action: a.Action, Ref: a.Ref.String(), Name: orNil(a.Name), Reason: orNil(a.Reason),
		Outcome: orNil(string(a.Outcome)), SettledAt: output.Time(a.SettledAt), RunID: a.Run,
	}
}

func targetItem(c incidents.SeenCheck) IncidentTargetItem {
	return IncidentTargetItem{c.ID, c.Title, string(c.Verdict), orNil(c.Value), orNil(c.Target), c.At, EvidenceList(c.Evidence)}
}

func escalationItem(e history.Event) IncidentEscalationItem {
	m := e.Message
	return IncidentEscalationItem{e.At, e.Text, orNil(m.Alert), orNil(m.Severity), orNil(m.Level), listed(m.To), orNil(m.Error)}
}

func reportStepItem(s incident.Step) IncidentStepItem {
	return IncidentStepItem{
		ID: s.ID, Title: s.Title, Kind: s.Kind, State: s.State, Verdict: orNil(s.Verdict), Text: orNil(s.Text), Answer: orNil(s.Answer),
		ETASeconds: output.Seconds(s.ETA), TookSeconds: output.Seconds(s.Took), BeganAt: output.Time(s.Began), EndedAt: output.Time(s.Ended), RunID: orNil(s.Run),
	}
}

func answerItem(a incidents.ReportAnswer) IncidentQuestionItem {
	return IncidentQuestionItem{a.ID, a.Ask, orNil(a.Answer), orNil(a.Source), a.NeedsPerson}
}

func reportTaskItem(t incidents.ReportTask) IncidentTaskItem {
	return IncidentTaskItem{t.Title, orNil(t.Group), orNil(t.Cause), orNil(t.Where), t.Where == ""}
}
