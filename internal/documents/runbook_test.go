package documents

// runbookRow is one runbook.
type runbookRow struct {
	// Its id.
	ID string `json:"id"`
	// Its title.
	Title string `json:"title"`
	// The alerts that lead to it.
	Alerts []string `json:"alerts"`
	// The causes for which it has a branch, by their ids in a diagnosis.
	Causes []string `json:"causes"`
	// How long its diagnosis takes a person.
	ETASeconds float64 `json:"eta_seconds"`
	// The team that keeps it.
	Owner string `json:"owner"`
	// The day of its last review.
	Updated string `json:"updated"`
	// True: sbx ships it. False: it is a file of yours.
	Shipped bool `json:"shipped"`
	// Where it was read.
	File string `json:"file"`
}

// runbookItem is one runbook in full. Settings that its texts name stand there with their defaults.
type runbookItem struct {
	runbookRow

	// Who has to agree to a change.
	Reviewers []string `json:"reviewers"`
	// The day from which its review is overdue.
	ReviewDue string `json:"review_due"`
	// What it means that the alert fires.
	Meaning string `json:"meaning"`
	// Who notices, and what.
	Impact string `json:"impact"`
	// The diagnosis, in its order.
	Steps []runbookStep `json:"steps"`
	// What to do for each cause.
	Branches []runbookBranch `json:"branches"`
	// What to do whatever the cause.
	Procedures []runbookProcedure `json:"procedures"`
	// What shows that it helped.
	Verification []runbookStep `json:"verification"`
	// When to call somebody.
	Escalation []runbookEscalation `json:"escalation"`
	// Who can be called.
	Contacts []runbookContact `json:"contacts"`
	// What the report after the incident answers.
	Questions []runbookQuestion `json:"questions"`
	// What to do after the incident.
	Actions []runbookTask `json:"actions"`
}

// runbookStep is one step.
type runbookStep struct {
	// Its id.
	ID string `json:"id"`
	// Its title.
	Title string `json:"title"`
	// What it does: collect, check, manual, confirm, act or wait_until.
	Kind string `json:"kind"`
	// How long it takes a person; 0 for a check of what was collected.
	ETASeconds float64 `json:"eta_seconds"`
	// The lines that a person types.
	Commands []string `json:"commands"`
	// The condition without which it is left out; null for none.
	When *string `json:"when"`
	// The condition that it checks or waits for; null for none.
	Condition *string `json:"condition"`
	// The least that a person does before it acts: yes, count or name; null where it does not act.
	Gate *string `json:"gate"`
	// The condition that proves its effect; null where it does not act.
	Expect *string `json:"expect"`
	// How long expect or a wait may take; 0 for neither.
	WithinSeconds float64 `json:"within_seconds"`
	// The requirements that it answers.
	Rows []string `json:"rows"`
}

// runbookBranch is what to do for one cause.
type runbookBranch struct {
	// The cause, by its id in a diagnosis.
	Cause string `json:"cause"`
	// What the diagnosis calls it.
	Title string `json:"title"`
	// The runbook about it; null for none.
	See *string `json:"see"`
	// What to do now.
	Steps []runbookStep `json:"steps"`
	// What to do so that it does not come again.
	FollowUp []runbookTask `json:"follow_up"`
}

// runbookProcedure is a list of steps with a title.
type runbookProcedure struct {
	// Its id.
	ID string `json:"id"`
	// Its title.
	Title string `json:"title"`
	// The steps.
	Steps []runbookStep `json:"steps"`
}

// runbookEscalation says when to call whom.
type runbookEscalation struct {
	// The alert; null for a condition of its own.
	Alert *string `json:"alert"`
	// The condition.
	Condition string `json:"condition"`
	// How long it has to hold, by the default thresholds; 0 = at once.
	ForSeconds float64 `json:"for_seconds"`
	// The contact, by its id.
	To string `json:"to"`
}

// runbookContact is somebody who can be called.
type runbookContact struct {
	// Its id.
	ID string `json:"id"`
	// The level of alerts that goes there: agents, infrastructure or vendor.
	Level string `json:"level"`
	// The name.
	Name string `json:"name"`
	// Where to reach them; null where the runbook does not say.
	Channel *string `json:"channel"`
	// What they are called for.
	About string `json:"about"`
}

// runbookQuestion is what the report after the incident answers.
type runbookQuestion struct {
	// Its id.
	ID string `json:"id"`
	// The question.
	Question string `json:"question"`
	// The collectors that answer it; empty = a person does.
	AnsweredBy []string `json:"answered_by"`
}

// runbookTask is something to do after the incident.
type runbookTask struct {
	// What to do.
	Title string `json:"title"`
	// What it improves: detection, code or docs; null for neither.
	Group *string `json:"group"`
	// The command that does it already; null where a person does it.
	Where *string `json:"where"`
}

// lintRow is one mistake in a runbook.
type lintRow struct {
	// The file.
	File string `json:"file"`
	// The line, from 1.
	Line int `json:"line"`
	// The column, from 1, in characters.
	Column int `json:"column"`
	// error or warning. Only an error is a finding for the exit code.
	Severity string `json:"severity"`
	// What it is about: syntax, step-kind, reference, expression, not-collected, unreachable-cause, no-gate, no-proof, eta, eta-sum, number, duplicate, no-runbook, stale or unused.
	Rule string `json:"rule"`
	// What is wrong.
	Message string `json:"message"`
	// What to write instead; null where the message says all.
	Hint *string `json:"hint"`
	// The line of the file, and a line with carets below the place.
	Excerpt []string `json:"excerpt"`
}

// draftRow is a runbook that was written.
type draftRow struct {
	// Its id.
	ID string `json:"id"`
	// Its file; null where it was only printed.
	Path *string `json:"path"`
	// The document.
	Text string `json:"text"`
}

// prometheusRule is an alerting rule, or an alert that has none.
type prometheusRule struct {
	// The name of the alert.
	Alert string `json:"alert"`
	// warning or critical; null without a rule.
	Severity *string `json:"severity"`
	// How long the expression must hold.
	ForSeconds float64 `json:"for_seconds"`
	// The expression of PromQL; null without a rule.
	Expr *string `json:"expr"`
	// Who acts first: agents, infrastructure or vendor; null without a rule.
	Level *string `json:"level"`
	// One line for people; null without a rule.
	Summary *string `json:"summary"`
	// The condition and the next command; null without a rule.
	Description *string `json:"description"`
	// The runbook that it leads to; null for none.
	Runbook *string `json:"runbook"`
	// The address of its page; null without a rule.
	URL *string `json:"url"`
	// Why there is no rule; null where there is one.
	Without *string `json:"without"`
}

// runbookTest is a recorded incident, judged again.
type runbookTest struct {
	// Its name: that of its file.
	Incident string `json:"incident"`
	// same, changed, accepted (its expectation was rewritten), or unreadable.
	Verdict string `json:"verdict"`
	// The differences in words, or why it cannot be read; null for none.
	Message *string `json:"message"`
	// What is concluded differently.
	Changes []conclusionChange `json:"changes"`
	// The thresholds that are not those in force then.
	Settings []conclusionChange `json:"settings"`
	// Its file.
	File string `json:"file"`
	// When it was recorded; null where it cannot be read.
	At *string `json:"at"`
}

// conclusionChange is one difference between then and now.
type conclusionChange struct {
	// What differs: verdict, listed, stuck, suspected, unjudged, plan, cause, flag, alert, check, runbook or setting.
	Kind string `json:"kind"`
	// The id of the flag, cause, alert, check, setting, or part of a runbook, or the sandbox whose cause differs; null where there is one of its kind.
	ID *string `json:"id"`
	// The count, verdict, confidence or value then; null for none.
	Then *string `json:"then"`
	// The same now; null for none.
	Now *string `json:"now"`
	// The sandboxes that were in it then and are not now.
	Gone []string `json:"gone"`
	// The sandboxes that are in it now and were not then; of a setting, the providers that it is about.
	New []string `json:"new"`
	// The difference in words.
	Message string `json:"message"`
}
