package views

import (
	"slices"
	"time"

	"sbx/internal/incident"
	"sbx/internal/ops/incidents"
	"sbx/internal/output"
	"sbx/internal/requirement"
	"sbx/internal/runs"
)

// NoteItem is a note as it is kept.
type NoteItem struct {
	At        time.Time `json:"at"`        // When it was.
	Text      string    `json:"text"`      // The note, without secrets.
	Actor     string    `json:"actor"`     // Who wrote it.
	Host      string    `json:"host"`      // On which host.
	Providers []string  `json:"providers"` // The profiles that it is about; empty = all.
	Milestone *string   `json:"milestone"` // The milestone that was reached then.
	Question  *string   `json:"question"`  // The question of a runbook that it answers.
	Shared    bool      `json:"shared"`    // True: it is in the store that hosts share; false: on this host.
}

// IncidentEventItem is one thing that happened.
type IncidentEventItem struct {
	At        time.Time              `json:"at"`        // When.
	Kind      string                 `json:"kind"`      // note, seen, acted, verified, step, escalated (somebody was told) or to_call; of an incident of before also started, acknowledged and closed.
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

// IncidentReportItem is all that is known of a run of a runbook, or of a span of time.
type IncidentReportItem struct {
	ID           *string                  `json:"id" table:""`            // The run of the runbook, or an incident that an earlier version recorded; null = a span of time.
	Title        *string                  `json:"title" table:""`         // What it is about.
	Since        *time.Time               `json:"since" table:""`         // When it began; null where its record cannot be read.
	Until        *time.Time               `json:"until" table:""`         // When it ended; null = it goes on.
	Severity     *string                  `json:"severity" table:""`      // critical or warning; null where it is not known.
	Alert        *string                  `json:"alert" table:""`         // The alert that it is about; null where it is not known.
	Runbook      *string                  `json:"runbook" table:""`       // The runbook whose questions and actions these are.
	RunbookTitle *string                  `json:"runbook_title" table:""` // Its title.
	Providers    []string                 `json:"providers" table:""`     // The profiles that it is about; empty = all.
	Host         *string                  `json:"host" table:""`          // The host on which it was begun; null for a span of time.
	StartedBy    *string                  `json:"started_by" table:""`    // Who began it; null for a span of time.
	ReportedAt   time.Time                `json:"reported_at" table:""`   // When this report was made.
	Moments      []MilestoneItem          `json:"moments" table:""`       // The milestones: detected, acknowledged, mitigated and verified, in this order.
	Timeline     []IncidentEventItem      `json:"timeline" table:""`      // What happened, by time.
	Evidence     []IncidentFlagItem       `json:"evidence" table:""`      // The flags and alerts that held, each as it was last seen.
	Causes       []IncidentCauseItem      `json:"causes" table:""`        // The causes that were found, of all sandboxes or of one, each as it was surest; the likeliest first.
	Figures      []IncidentFigureItem     `json:"figures" table:""`       // What was counted of all sandboxes, first and last.
	Acts         []IncidentDoneItem       `json:"acts" table:""`          // Every act in the time, from the journals of all verbs; the oldest first.
	Verification []IncidentTargetItem     `json:"verification" table:""`  // The targets, each as it was last checked.
	Escalations  []IncidentEscalationItem `json:"escalations" table:""`   // Who was told, and who is to be called.
	Steps        []IncidentStepItem       `json:"steps" table:""`         // The steps of the runbook that were run.
	ETASeconds   *float64                 `json:"eta_seconds" table:""`   // How long the steps that were done in the last run take a person; null without any.
	TookSeconds  *float64                 `json:"took_seconds" table:""`  // How long they took.
	Questions    []IncidentQuestionItem   `json:"questions" table:""`     // The questions of the runbook, answered as far as the record does.
	ActionItems  []IncidentTaskItem       `json:"action_items" table:""`  // What is to be done.
	Problems     []string                 `json:"problems" table:""`      // What is missing from the report, and why.
}

// MilestoneItem is when a milestone was reached.
type MilestoneItem struct {
	Milestone             string     `json:"milestone"`               // detected, acknowledged, mitigated or verified.
	At                    *time.Time `json:"at"`                      // When; null = not known.
	SecondsAfterDetection *float64   `json:"seconds_after_detection"` // The time since it was detected; null where one of both is not known.
	Source                *string    `json:"source"`                  // How that is known, or why it is not.
	Who                   *string    `json:"who"`                     // Who did it, or said so.
}

// IncidentFlagItem is a sign that something is wrong.
type IncidentFlagItem struct {
	ID          string         `json:"id"`          // The name of the flag or of the alert.
	Requirement *string        `json:"requirement"` // Its number in docs/REQUIREMENTS.md, until the next release; null = none.
	What        string         `json:"what"`        // What is wrong.
	Severity    *string        `json:"severity"`    // critical or warning.
	SeenAt      time.Time      `json:"seen_at"`     // When it was last seen.
	Verb        string         `json:"verb"`        // The verb that saw it.
	Evidence    []EvidenceItem `json:"evidence"`    // What shows it.
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
	ID          string         `json:"id"`          // Its name.
	Requirement *string        `json:"requirement"` // Its number in docs/REQUIREMENTS.md, until the next release; null = none.
	Title       string         `json:"title"`       // What is compared.
	Verdict     string         `json:"verdict"`     // Whether it is met.
	Value       *string        `json:"value"`       // The figure; null = not known.
	Target      *string        `json:"target"`      // The bound.
	CheckedAt   time.Time      `json:"checked_at"`  // When it was checked.
	Evidence    []EvidenceItem `json:"evidence"`    // What it rests on.
}

// IncidentEscalationItem is a notification, or somebody to call.
type IncidentEscalationItem struct {
	At       time.Time `json:"at"`       // When.
	Why      string    `json:"why"`      // Why.
	Alert    *string   `json:"alert"`    // The alert; null for none.
	Severity *string   `json:"severity"` // critical or warning.
	Level    *string   `json:"level"`    // Who acts first.
	To       []string  `json:"to"`       // The services that got it, or who is to be called.
	Told     bool      `json:"told"`     // True: a notification was sent to them; false: nothing was.
	Error    *string   `json:"error"`    // Why it was not sent, or not to all; null where it was, and where somebody is to be called.
}

// IncidentStepItem is one step of a runbook.
type IncidentStepItem struct {
	ID          string     `json:"id"`           // Its id.
	Number      *string    `json:"number"`       // Its number in the runbook; null where an earlier version has recorded it.
	Word        *string    `json:"word"`         // What its whole step is called; null likewise.
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

func reportItem(r *incidents.IncidentReport) IncidentReportItem {
	s := r.Scope
	item := IncidentReportItem{
		ID: orNil(s.ID), Title: orNil(s.Title), Since: output.Time(s.Since), Until: output.Time(s.Until), Severity: orNil(r.Severity), Alert: orNil(r.Alert),
		Runbook: orNil(r.Plan.Runbook), RunbookTitle: orNil(r.Plan.Title), Providers: listed(s.Providers), Host: orNil(s.By.Host), StartedBy: orNil(s.By.Who),
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
func stepTimes(steps []incidents.Step) (eta, took time.Duration) {
	for _, s := range steps {
		if wasDone(s) {
			eta, took = eta+s.ETA, took+s.Took
		}
	}
	return eta, took
}

func wasDone(s incidents.Step) bool { return s.State == "done" || s.State == "failed" }

func milestoneItem(r *incidents.IncidentReport, m incidents.Moment) MilestoneItem {
	item := MilestoneItem{Milestone: string(m.Milestone), At: output.Time(m.At), Source: orNil(m.Source), Who: orNil(m.Who)}
	if detected := r.Moment(incident.MilestoneDetected).At; !m.At.IsZero() && !detected.IsZero() {
		item.SecondsAfterDetection = new(output.Seconds(m.At.Sub(detected)))
	}
	return item
}

func eventItem(e incidents.IncidentEvent) IncidentEventItem {
	item := IncidentEventItem{
		At: e.At, Kind: e.Kind, Actor: e.Who, Host: e.Host, Text: EventText(e), Verb: orNil(e.Verb), Figures: output.Ordered[*int64]{},
		Acts: each(e.Acts, actOfEvent),
	}
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

func actOfEvent(a runs.Act) IncidentActItem {
	return IncidentActItem{a.Ref.String(), a.Action, orNil(joinKnown("; ", a.Reason, a.Detail)), orNil(string(a.Outcome)), &a.Run}
}

func flagItem(c incidents.SeenCheck) IncidentFlagItem {
	return IncidentFlagItem{c.ID, orNil(requirement.Of(c.ID)), c.Title, orNil(c.Severity), c.At, c.Verb, EvidenceList(c.Evidence)}
}

func seenCauseItem(c incidents.SeenCause) IncidentCauseItem {
	return IncidentCauseItem{c.ID, c.Title, string(c.Confidence), c.Score, c.Coverage, c.At, c.Verb, EvidenceList(c.Evidence), orNil(c.WhyNot)}
}

func seenFigureItem(f incidents.SeenFigure) IncidentFigureItem {
	return IncidentFigureItem{f.Name, f.Before, output.Time(f.BeforeAt), f.After, output.Time(f.AfterAt)}
}

func doneItem(a runs.Act) IncidentDoneItem {
	return IncidentDoneItem{
		At: a.At, Actor: a.Actor.Who, Host: a.Actor.Host, Verb: a.Verb, Action: a.Action, Ref: a.Ref.String(), Name: orNil(a.Name), Reason: orNil(a.Reason),
		Outcome: orNil(string(a.Outcome)), SettledAt: output.Time(a.SettledAt), RunID: a.Run,
	}
}

func targetItem(c incidents.SeenCheck) IncidentTargetItem {
	return IncidentTargetItem{c.ID, orNil(requirement.Of(c.ID)), c.Title, string(c.Verdict), orNil(c.Value), orNil(c.Target), c.At, EvidenceList(c.Evidence)}
}

func escalationItem(e incidents.Escalation) IncidentEscalationItem {
	return IncidentEscalationItem{e.At, e.Why, orNil(e.Alert), orNil(e.Severity), orNil(e.Level), listed(e.To), e.WasTold(), orNil(e.Error)}
}

func reportStepItem(s incidents.Step) IncidentStepItem {
	return IncidentStepItem{
		ID: s.ID, Number: orNil(s.Number), Word: orNil(s.Word), Title: s.Title, Kind: s.Kind, State: s.State, Verdict: orNil(s.Verdict), Text: orNil(s.Text), Answer: orNil(s.Answer),
		ETASeconds: output.Seconds(s.ETA), TookSeconds: output.Seconds(s.Took), BeganAt: output.Time(s.Began), EndedAt: output.Time(s.Ended), RunID: orNil(s.Run),
	}
}

func answerItem(a incidents.ReportAnswer) IncidentQuestionItem {
	return IncidentQuestionItem{a.ID, a.Ask, orNil(a.Answer), orNil(a.Source), a.NeedsPerson}
}

func reportTaskItem(t incidents.ReportTask) IncidentTaskItem {
	return IncidentTaskItem{t.Title, orNil(t.Group), orNil(t.Cause), orNil(t.Where), t.Where == ""}
}
