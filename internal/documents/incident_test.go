package documents

// incidentRow is one incident in short.
type incidentRow struct {
	// Its id; null where none is open.
	ID *string `json:"id"`
	// open, closed, damaged (nothing can be added to its record), or none.
	State string `json:"state"`
	// critical or warning; null where it is not known.
	Severity *string `json:"severity"`
	// What it is about.
	Title *string `json:"title"`
	// When it was started.
	StartedAt *moment `json:"started_at"`
	// From its start to its end, or until now.
	DurationSeconds *float64 `json:"duration_seconds"`
	// Who started it.
	StartedBy *string `json:"started_by"`
	// The alert that it is about.
	Alert *string `json:"alert"`
	// The runbook that is followed.
	Runbook *string `json:"runbook"`
	// The profiles that it is about; empty = all.
	Providers []string `json:"providers"`
	// When it was closed.
	ClosedAt *moment `json:"closed_at"`
	// How it ended: resolved, false-alarm or duplicate.
	ClosedAs *string `json:"closed_as"`
	// How many lines its own record has: its start, acknowledgements, notes and end.
	Events int `json:"events"`
	// The host on which it was started.
	Host *string `json:"host"`
	// Why its record cannot be trusted, or cannot be read further; null where it can.
	Problem *string `json:"problem"`
}

// incidentShown is one incident with its whole timeline.
type incidentShown struct {
	incidentRow

	// What happened, by time.
	Timeline []incidentEvent `json:"timeline"`
}

// incidentEvent is one thing that happened.
type incidentEvent struct {
	// When.
	At moment `json:"at"`
	// started, acknowledged, note, seen, acted, verified, step, escalated or closed.
	Kind string `json:"kind"`
	// Who did it.
	Actor string `json:"actor"`
	// On which host.
	Host string `json:"host"`
	// One line about it.
	Text string `json:"text"`
	// The verb of sbx; null for none.
	Verb *string `json:"verb"`
	// What was counted; null = it could not be.
	Figures map[string]*float64 `json:"figures"`
	// What one run did to sandboxes.
	Acts []incidentAct `json:"acts"`
	// The milestone that it is, as a person says: detected, acknowledged, mitigated or verified.
	Milestone *string `json:"milestone"`
}

// incidentAct is what was done to one sandbox, or to its record.
type incidentAct struct {
	// The sandbox.
	Ref string `json:"ref"`
	// terminate, delete, or what reconcile did to a record.
	Action string `json:"action"`
	// Why.
	Reason *string `json:"reason"`
	// The outcome; null where none is known.
	Outcome *string `json:"outcome"`
	// The run, as in `sbx audit`.
	RunID *string `json:"run_id"`
}

// incidentReport is all that is known of an incident.
type incidentReport struct {
	// Its id.
	ID string `json:"id"`
	// What it is about.
	Title *string `json:"title"`
	// open, closed or damaged.
	State string `json:"state"`
	// How it ended: resolved, false-alarm or duplicate.
	ClosedAs *string `json:"closed_as"`
	// critical or warning; null where it is not known.
	Severity *string `json:"severity"`
	// The alert that it is about; null where it is not known.
	Alert *string `json:"alert"`
	// The runbook whose questions and actions these are.
	Runbook *string `json:"runbook"`
	// Its title.
	RunbookTitle *string `json:"runbook_title"`
	// The profiles that it is about; empty = all.
	Providers []string `json:"providers"`
	// The host on which it was started.
	Host string `json:"host"`
	// Who started it.
	StartedBy string `json:"started_by"`
	// When this report was made.
	ReportedAt moment `json:"reported_at"`
	// The milestones: detected, acknowledged, mitigated, verified and closed, in this order.
	Moments []incidentMoment `json:"moments"`
	// What happened, by time.
	Timeline []incidentEvent `json:"timeline"`
	// The flags and alerts that held, each as it was last seen.
	Evidence []incidentFlag `json:"evidence"`
	// The causes that were found, of all sandboxes or of one, each as it was surest; the likeliest first.
	Causes []incidentCause `json:"causes"`
	// What was counted of all sandboxes, first and last.
	Figures []incidentFigure `json:"figures"`
	// Every act in the time of the incident, from the journals of all verbs; the oldest first.
	Acts []incidentDone `json:"acts"`
	// The targets, each as it was last checked.
	Verification []incidentTarget `json:"verification"`
	// Who was notified.
	Escalations []incidentEscalation `json:"escalations"`
	// The steps of the runbook that were run.
	Steps []incidentStep `json:"steps"`
	// How long the steps that were done in the last run take a person; null without any.
	ETASeconds *float64 `json:"eta_seconds"`
	// How long they took.
	TookSeconds *float64 `json:"took_seconds"`
	// The questions of the runbook, answered as far as the record does.
	Questions []incidentQuestion `json:"questions"`
	// What is to be done.
	ActionItems []incidentTask `json:"action_items"`
	// What is missing from the report, and why.
	Problems []string `json:"problems"`
}

// incidentMoment is when a milestone was reached.
type incidentMoment struct {
	// detected, acknowledged, mitigated, verified or closed.
	Milestone string `json:"milestone"`
	// When; null = not known.
	At *moment `json:"at"`
	// The time since it was detected; null where one of both is not known.
	SecondsAfterDetection *float64 `json:"seconds_after_detection"`
	// How that is known, or why it is not.
	Source *string `json:"source"`
	// Who did it, or said so.
	Who *string `json:"who"`
}

// incidentEvidence is one observation.
type incidentEvidence struct {
	// What was observed.
	What string `json:"what"`
	// Its value.
	Value string `json:"value"`
	// Where it was read.
	Source string `json:"source"`
	// When.
	At *moment `json:"at"`
}

// incidentFlag is a sign that something is wrong.
type incidentFlag struct {
	// The id of the requirement or of the alert.
	ID string `json:"id"`
	// What is wrong.
	What string `json:"what"`
	// critical or warning.
	Severity *string `json:"severity"`
	// When it was last seen.
	SeenAt moment `json:"seen_at"`
	// The verb that saw it.
	Verb string `json:"verb"`
	// What shows it.
	Evidence []incidentEvidence `json:"evidence"`
}

// incidentCause is one cause.
type incidentCause struct {
	// Its id, as in a diagnosis.
	ID string `json:"id"`
	// What it is called.
	Title string `json:"title"`
	// certain, probable, hint or unknown.
	Confidence string `json:"confidence"`
	// 0 to 1: the symptoms that were seen, of those that are known.
	Score float64 `json:"score"`
	// 0 to 1: the symptoms that are known, of all.
	Coverage float64 `json:"coverage"`
	// When it was seen so.
	SeenAt moment `json:"seen_at"`
	// The verb that saw it.
	Verb string `json:"verb"`
	// What shows it.
	Evidence []incidentEvidence `json:"evidence"`
	// Why it is not the first; null where it is.
	WhyNot *string `json:"why_not"`
}

// incidentFigure is a figure before and after.
type incidentFigure struct {
	// What is counted.
	Name string `json:"name"`
	// As it was last counted before the first act, or first where nothing was done; null = not known.
	Before *float64 `json:"before"`
	// The time of that.
	BeforeAt *moment `json:"before_at"`
	// As it was last counted since, by the same kind of look at the same providers; null = not known.
	After *float64 `json:"after"`
	// The time of that.
	AfterAt *moment `json:"after_at"`
}

// incidentDone is one act, as in `sbx audit`.
type incidentDone struct {
	// When it was requested.
	At moment `json:"at"`
	// Who requested it.
	Actor string `json:"actor"`
	// On which host.
	Host string `json:"host"`
	// With which verb.
	Verb string `json:"verb"`
	// terminate, delete, or what reconcile did to a record.
	Action string `json:"action"`
	// The sandbox.
	Ref string `json:"ref"`
	// Its name.
	Name *string `json:"name"`
	// Why.
	Reason *string `json:"reason"`
	// The outcome; null where no journal knows it.
	Outcome *string `json:"outcome"`
	// When the outcome was seen.
	SettledAt *moment `json:"settled_at"`
	// The run.
	RunID string `json:"run_id"`
}

// incidentTarget is one target of `sbx verify`.
type incidentTarget struct {
	// The id of the requirement.
	ID string `json:"id"`
	// What is compared.
	Title string `json:"title"`
	// Whether it is met.
	Verdict string `json:"verdict"`
	// The figure; null = not known.
	Value *string `json:"value"`
	// The bound.
	Target *string `json:"target"`
	// When it was checked.
	CheckedAt moment `json:"checked_at"`
	// What it rests on.
	Evidence []incidentEvidence `json:"evidence"`
}

// incidentEscalation is a notification, or somebody to call.
type incidentEscalation struct {
	// When.
	At moment `json:"at"`
	// Why.
	Why string `json:"why"`
	// The alert; null for none.
	Alert *string `json:"alert"`
	// critical or warning.
	Severity *string `json:"severity"`
	// Who acts first.
	Level *string `json:"level"`
	// The services that got it, or who is to be called.
	To []string `json:"to"`
	// Why it was not sent; null where it was.
	Error *string `json:"error"`
}

// incidentStep is one step of a runbook.
type incidentStep struct {
	// Its id.
	ID string `json:"id"`
	// Its title.
	Title string `json:"title"`
	// collect, check, manual, confirm, act or wait_until.
	Kind string `json:"kind"`
	// done, failed, skipped or not_selected.
	State string `json:"state"`
	// true, false or unknown; null where it has none.
	Verdict *string `json:"verdict"`
	// What it found, or why it was left out.
	Text *string `json:"text"`
	// What a person answered.
	Answer *string `json:"answer"`
	// How long it takes a person.
	ETASeconds float64 `json:"eta_seconds"`
	// How long it took.
	TookSeconds float64 `json:"took_seconds"`
	// When it began.
	BeganAt *moment `json:"began_at"`
	// When it ended.
	EndedAt *moment `json:"ended_at"`
	// The run of the runbook.
	RunID *string `json:"run_id"`
}

// incidentQuestion is a question of the runbook.
type incidentQuestion struct {
	// Its id.
	ID string `json:"id"`
	// The question.
	Question string `json:"question"`
	// The answer; null = none is on record.
	Answer *string `json:"answer"`
	// Who or what answers it.
	Source *string `json:"source"`
	// True: a person has to answer it.
	NeedsPerson bool `json:"needs_person"`
}

// incidentTask is something to do.
type incidentTask struct {
	// What to do.
	Title string `json:"title"`
	// What it improves: detection, code or docs.
	Group *string `json:"group"`
	// The cause for which it is to be done; null = whatever the cause.
	Cause *string `json:"cause"`
	// The command of sbx that does it already.
	Where *string `json:"where"`
	// True: a person has to do it.
	NeedsPerson bool `json:"needs_person"`
}
