package documents

import (
	"sbx/internal/sandbox"
)

// runbookRun is a run of a runbook, with its steps as items. The keys behind them are missing where
// nothing was begun.
type runbookRun struct {
	listOf[runStep]

	// The id of the run; null for a dry run, which is not on record.
	RunID *string `json:"run_id,omitempty"`
	// The runbook.
	Runbook string `json:"runbook,omitempty"`
	// Its title.
	Title string `json:"title,omitempty"`
	// The procedure that was chosen; null for none.
	Procedure *string `json:"procedure,omitempty"`
	// The sandbox or task that was named; null for none.
	Ref *string `json:"ref,omitempty"`
	// The profiles that it is about.
	Providers []string `json:"providers,omitempty"`
	// True: nothing was asked and nothing was changed.
	DryRun bool `json:"dry_run,omitempty"`
	// Who began it.
	Who string `json:"who,omitempty"`
	// The host on which it runs.
	Host string `json:"host,omitempty"`
	// When it began.
	StartedAt *moment `json:"started_at,omitempty"`
	// When it ended, or when it was left waiting or interrupted; null while it runs.
	EndedAt *moment `json:"ended_at,omitempty"`
	// When somebody went on with it.
	Resumed []resumption `json:"resumed,omitempty"`
	// running, waiting (for an answer), interrupted, done or failed.
	State string `json:"state,omitempty"`
	// Whether every act has had its effect and every check of the verification holds.
	Verdict sandbox.Verdict `json:"verdict,omitempty"`
	// The causes that the diagnosis names, the likeliest first.
	Causes []namedCause `json:"causes,omitempty"`
	// Whom to call, and whether now.
	Escalation []call `json:"escalation,omitempty"`
}

// resumption is when somebody went on with a run.
type resumption struct {
	// When.
	At *moment `json:"at"`
	// Who.
	Who string `json:"who"`
	// On which host.
	Host string `json:"host"`
}

// runStep is one step of a run.
type runStep struct {
	// Its id.
	ID string `json:"id"`
	// diagnosis, `cause THEORY`, `procedure ID` or verification.
	Section string `json:"section"`
	// Its title.
	Title string `json:"title"`
	// What it does: collect, check, manual, confirm, act or wait_until.
	Kind string `json:"kind"`
	// pending, running, done, failed, skipped or not_selected.
	State string `json:"state"`
	// Of its condition, or whether it could read or do everything; null where it has none, or was not done.
	Verdict *sandbox.Verdict `json:"verdict"`
	// Why it failed, was skipped, waits or is not selected; null where the state says all.
	Reason *string `json:"reason"`
	// The condition that it checks or waits for; null for none.
	Condition *string `json:"condition"`
	// How long it takes a person.
	ETASeconds float64 `json:"eta_seconds"`
	// How long it took, with the time that people took for answers; null where it was not done.
	TookSeconds *float64 `json:"took_seconds"`
	// When it began; null where it did not.
	BeganAt *moment `json:"began_at"`
	// When it ended; null where it did not.
	EndedAt *moment `json:"ended_at"`
	// Of a dry run: the step whose result decides about this one; null for none.
	DependsOn *string `json:"depends_on"`
	// What collectors and people answered.
	Answers []stepAnswer `json:"answers"`
	// What was compared; of a manual step what is to be done.
	Evidence []string `json:"evidence"`
	// What it did; null for a step that does not act, or did not come to its plan.
	Act *stepAct `json:"act"`
}

// stepAnswer is one answer.
type stepAnswer struct {
	// The question.
	Question string `json:"question"`
	// The answer, or why there is none.
	Answer string `json:"answer"`
	// False: it is not known.
	Known bool `json:"known"`
	// The collector, or who answered.
	By string `json:"by"`
}

// stepAct is what an acting step was about to do, and what came of it.
type stepAct struct {
	// The verb: terminate, cleanup, reconcile or stop.
	Action string `json:"action"`
	// The line that a person types for it.
	Command string `json:"command"`
	// What had to be answered: yes, count or name.
	Gate string `json:"gate"`
	// What allowed it; null where nothing has.
	Allowed *string `json:"allowed"`
	// The operation's own record, for `sbx cleanup show`; null for none.
	RunID *string `json:"run_id"`
	// What it is about.
	Targets []runTarget `json:"targets"`
	// What stays, and why.
	Kept []runTarget `json:"kept"`
	// When it was begun; null where it was not.
	BeganAt *moment `json:"began_at"`
	// When its outcome was known; null where it is not.
	EndedAt *moment `json:"ended_at"`
	// What became of each target.
	Outcomes []runOutcome `json:"outcomes"`
	// What went wrong; null for nothing.
	Error *string `json:"error"`
	// The kind of that error; null for none.
	Kind *string `json:"kind"`
	// The condition that proves its effect; null for none.
	Expect *string `json:"expect"`
	// Whether that was seen to hold in time; null where nobody looked.
	Effect *sandbox.Verdict `json:"effect"`
}

// runTarget is one target of an act.
type runTarget struct {
	// A sandbox; of stop a task, of an emergency cleanup a profile.
	Ref string `json:"ref"`
	// Why it is chosen, or why it stays.
	Reason string `json:"reason"`
}

// runOutcome is what became of one target.
type runOutcome struct {
	// The target.
	Ref string `json:"ref"`
	// What became of it.
	Outcome sandbox.Outcome `json:"outcome"`
	// Why; null where the outcome says everything.
	Reason *string `json:"reason"`
}

// namedCause is a cause that the diagnosis of a run names.
type namedCause struct {
	// Its id.
	ID string `json:"id"`
	// Its title.
	Title string `json:"title"`
	// How sure it is; only certain and probable select the steps of a cause.
	Confidence sandbox.Confidence `json:"confidence"`
	// From 0 to 1: how much of what is known of it was seen.
	Score float64 `json:"score"`
	// True: its steps are done in this run.
	Selected bool `json:"selected"`
	// The sandboxes with this cause.
	Refs []string `json:"refs"`
	// What it was seen by.
	Evidence []evidence `json:"evidence"`
	// What speaks against it; null for nothing.
	WhyNot *string `json:"why_not"`
	// The runbook about it; null for none but this.
	See *string `json:"see"`
}

// call is somebody to call.
type call struct {
	// The contact, by its id.
	To string `json:"to"`
	// The contact's name.
	Name string `json:"name"`
	// Where to reach them; null where the runbook does not say.
	Channel *string `json:"channel"`
	// The alert that decides; null for a condition of the runbook.
	Alert *string `json:"alert"`
	// The condition.
	Condition string `json:"condition"`
	// Whether to call now.
	Now sandbox.Verdict `json:"now"`
	// What to say; null where the runbook says nothing.
	Text *string `json:"text"`
	// What was compared.
	Evidence []string `json:"evidence"`
}

// runbookRunRow is one run in the list.
type runbookRunRow struct {
	// Its id.
	RunID string `json:"run_id"`
	// The runbook.
	Runbook string `json:"runbook"`
	// running, waiting, interrupted, done or failed.
	State string `json:"state"`
	// Whether every act has had its effect and every check of the verification holds.
	Verdict sandbox.Verdict `json:"verdict"`
	// When it began.
	StartedAt *moment `json:"started_at"`
	// How many of its steps are over.
	Done int `json:"done"`
	// How many steps it has, without those that are not selected.
	Steps int `json:"steps"`
	// When it ended, or was left; null while it runs.
	EndedAt *moment `json:"ended_at"`
	// Who began it.
	Who string `json:"who"`
	// On which host.
	Host string `json:"host"`
	// The procedure that was chosen; null for none.
	Procedure *string `json:"procedure"`
	// The sandbox or task that was named; null for none.
	About *string `json:"about"`
	// What went wrong; null for nothing.
	Error *string `json:"error"`
}
