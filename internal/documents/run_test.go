package documents

import "sbx/internal/sandbox"

// ended is what became of one sandbox.
type ended struct {
	// PROFILE/ID.
	Ref string `json:"ref"`
	// What became of it.
	Outcome sandbox.Outcome `json:"outcome"`
	// Why; empty where the outcome says everything.
	Reason string `json:"reason"`
	// How long it took.
	DurationSeconds float64 `json:"duration_seconds"`
	// What the outcome was seen by.
	Evidence []evidence `json:"evidence"`
}

// terminateDocument is the document of terminate; with --dry-run it has a plan and no items.
type terminateDocument struct {
	// Name and version of this form.
	Schema string `json:"schema"`
	// What became of each.
	Items []ended `json:"items,omitempty"`
	// False: something is missing.
	Complete bool `json:"complete,omitempty"`
	// Always false.
	Truncated bool `json:"truncated,omitempty"`
	// The run; `sbx cleanup show` shows it.
	RunID string `json:"run_id,omitempty"`
	// What became of all.
	Counts *counts `json:"counts,omitempty"`
	// What would be done, with --dry-run.
	Plan *plan `json:"plan,omitempty"`

	outcome
}

// plan is what a run would do.
type plan struct {
	// The run that it would be.
	RunID string `json:"run_id"`
	// Sandboxes created before this are selected; null where age does not choose.
	Cutoff *moment `json:"cutoff"`
	// What would be ended.
	Selected []planned `json:"selected"`
	// What would be left alone.
	Kept []planned `json:"kept"`
	// The limits of the run.
	Guards []guard `json:"guards"`
}

// planned is one sandbox of a plan.
type planned struct {
	// PROFILE/ID.
	Ref string `json:"ref"`
	// Why it is selected or kept.
	Reason string `json:"reason"`
}

// cleanupDocument is the document of cleanup: a plan without --yes, items with it, the checks of
// one sandbox with --explain.
type cleanupDocument struct {
	// Name and version of this form.
	Schema string `json:"schema"`
	// What became of each.
	Items []ended `json:"items,omitempty"`
	// False: a profile could not be listed, and nothing of it was selected.
	Complete bool `json:"complete,omitempty"`
	// Always false.
	Truncated bool `json:"truncated,omitempty"`
	// The run; `sbx cleanup show` shows it.
	RunID string `json:"run_id,omitempty"`
	// What became of all.
	Counts *counts `json:"counts,omitempty"`
	// How many were kept, by reason.
	Kept map[string]int `json:"kept,omitempty"`
	// How many are not yours, by profile.
	Unowned map[string]int `json:"unowned,omitempty"`
	// What would be done.
	Plan *cleanupPlan `json:"plan,omitempty"`
	// The checks of the sandbox that --explain names.
	Explain *explanation `json:"explain,omitempty"`

	outcome
}

// cleanupPlan is what a cleanup would do.
type cleanupPlan struct {
	// The run that it would be.
	RunID string `json:"run_id"`
	// Sandboxes created before this are selected; null where age does not choose.
	Cutoff *moment `json:"cutoff"`
	// What would be ended.
	Selected []cleanupSelected `json:"selected"`
	// What would be left alone.
	Kept []cleanupKept `json:"kept"`
	// How many could not be judged, and are kept.
	Unjudged int `json:"unjudged"`
	// The limits of the run.
	Guards []guard `json:"guards"`
	// How many are not yours, by profile.
	Unowned map[string]int `json:"unowned"`
}

// cleanupSelected is one that would be ended.
type cleanupSelected struct {
	planned

	// Its name; empty without one.
	Name string `json:"name"`
	// The task it works on, from its labels.
	TaskID string `json:"task_id"`
	// How old it is.
	AgeSeconds *float64 `json:"age_seconds"`
	judged
}

// cleanupKept is one that would be left alone.
type cleanupKept struct {
	planned

	// Why it is kept, in one fixed word.
	Ground string `json:"ground"`

	judged
}

// judged is the judgement of a sandbox in a plan.
type judged struct {
	// Whether it is stuck.
	Stuck sandbox.Verdict `json:"stuck"`
	// Why it is stuck.
	Cause *sandbox.Cause `json:"cause"`
	// How sure that is.
	Confidence *sandbox.Confidence `json:"confidence"`
	// True: the sandbox itself was asked. False: only its record was read.
	Looked bool `json:"looked"`
}

// diagnosis is the judgement of one sandbox.
type diagnosis struct {
	// Whether it is stuck.
	Stuck sandbox.Verdict `json:"stuck"`
	// Whether it works.
	Activity sandbox.Verdict `json:"activity"`

	verdict
}

// explanation says what each check of a cleanup makes of one sandbox.
type explanation struct {
	// PROFILE/ID.
	Ref string `json:"ref"`
	// True: the run would end it.
	Selected bool `json:"selected"`
	// Why it is kept, in one fixed word; empty where it is selected.
	Ground string `json:"ground"`
	// Why, in words.
	Reason string `json:"reason"`
	// The judgement.
	Diagnosis diagnosis `json:"diagnosis"`
	// The checks in their order.
	Checks []any `json:"checks"`
	// What was seen.
	Evidence []evidence `json:"evidence"`
}

// runRow is one recorded run.
type runRow struct {
	// The run.
	RunID string `json:"run_id"`
	// When it began.
	StartedAt *moment `json:"started_at"`
	// When it ended; null where it was cut off.
	EndedAt *moment `json:"ended_at"`
	// Where it ran.
	Host string `json:"host"`
	// How many it had selected.
	Selected int `json:"selected"`
	// What became of them.
	Counts *counts `json:"counts"`
	// Its exit code; null where it was cut off.
	ExitCode *int `json:"exit_code"`
	// True: `sbx cleanup --resume` can go on with it.
	Resumable bool `json:"resumable"`
}

// act is one request to terminate or delete a sandbox, or one repair of a record.
type act struct {
	// When it was requested.
	At moment `json:"at"`
	// The user who requested it.
	Actor string `json:"actor"`
	// The host on which they did.
	Host string `json:"host"`
	// The verb: terminate, cleanup, reconcile, task, stop, drill, or sweep (a supervisor that had died).
	Verb string `json:"verb"`
	// terminate, delete, or what reconcile did to a record: mark_terminated, adopt.
	Action string `json:"action"`
	// PROFILE/ID.
	Ref string `json:"ref"`
	// Its name, if it had one.
	Name string `json:"name"`
	// Its task, if known.
	TaskID string `json:"task_id"`
	// What was wrong with it by the judgement before; null where no cause is known.
	Cause *sandbox.Cause `json:"cause"`
	// The outcome; null: no journal knows it, since the run was interrupted.
	Outcome *sandbox.Outcome `json:"outcome"`
	// Why it was requested.
	Reason string `json:"reason"`
	// The run.
	RunID string `json:"run_id"`
	// What is said of the outcome.
	Detail string `json:"detail"`
	// The layer of defence, for a run from cron.
	Layer string `json:"layer"`
	// When the outcome was known.
	SettledAt *moment `json:"settled_at"`
	// The process.
	PID int `json:"pid"`
	// The version of sbx.
	Version string `json:"version"`
}

// cleanupStatus says whether a cleanup runs as often as it should.
type cleanupStatus struct {
	// When one last ran.
	LastRun *moment `json:"last_run"`
	// When one last succeeded.
	LastSuccess *moment `json:"last_success"`
	// How often it should run, as typed.
	ExpectedEvery string `json:"expected_every"`
	// The same in seconds.
	ExpectedEverySeconds float64 `json:"expected_every_seconds"`
	// Whether it runs.
	Verdict sandbox.Verdict `json:"verdict"`
	// The same in words.
	Message string `json:"message"`
}

// endedRecord is one sandbox of a recorded run.
type endedRecord struct {
	// PROFILE/ID.
	Ref string `json:"ref"`
	// What became of it; null where the run was cut off before.
	Outcome *sandbox.Outcome `json:"outcome"`
	// Why; empty where the outcome says everything.
	Reason string `json:"reason"`
	// How long it took.
	DurationSeconds *float64 `json:"duration_seconds"`
	// Why it was selected.
	SelectedBecause string `json:"selected_because"`
	// What was wrong with it by the judgement before; null where no cause was known.
	Cause *sandbox.Cause `json:"cause"`
	// What the outcome was seen by.
	Evidence []evidence `json:"evidence"`
	// What was known of it before; null where nothing was written down.
	Before *any `json:"before"`
}

// cleanupShow is the document of cleanup show. What is missing was not written down.
type cleanupShow struct {
	listOf[endedRecord]

	// The run.
	RunID string `json:"run_id,omitempty"`
	// When it began.
	StartedAt *moment `json:"started_at,omitempty"`
	// When it ended; null where it was cut off.
	EndedAt *moment `json:"ended_at,omitempty"`
	// Who ran it, where, in which process and with which version.
	Actor *actor `json:"actor,omitempty"`
	// The rule by which it selected, as it was recorded.
	Rule *any `json:"rule,omitempty"`
	// The limits of the run.
	Guards *[]guard `json:"guards,omitempty"`
	// The profiles that it looked at.
	Profiles *[]runProfile `json:"profiles,omitempty"`
	// How many were kept, by reason.
	Kept *map[string]int `json:"kept,omitempty"`
	// What became of all.
	Counts *counts `json:"counts,omitempty"`
	// The command.
	Verb string `json:"verb,omitempty"`
	// True: `sbx cleanup --resume` can go on with it.
	Resumable bool `json:"resumable,omitempty"`
}

// actor is who ran a command.
type actor struct {
	// The user.
	Who string `json:"who"`
	// The host.
	Host string `json:"host"`
	// The process.
	PID int `json:"pid"`
	// The version of sbx.
	Version string `json:"version"`
}

// runProfile is one profile of a recorded run.
type runProfile struct {
	// The profile.
	Profile string `json:"profile"`
	// False: it could not be listed, and nothing of it was selected.
	Complete bool `json:"complete"`
	// Why it could not be listed.
	Error string `json:"error"`
	// How many sandboxes it had.
	Fleet int `json:"fleet"`
	// How many of them ran.
	Active *int `json:"active"`
	// How many were selected.
	Selected int `json:"selected"`
	// How many are not yours.
	Unowned int `json:"unowned"`
}

// reconciled is one sandbox beside its record: what is planned, or with --fix what became of it.
type reconciled struct {
	// PROFILE/ID.
	Ref string `json:"ref"`
	// The profile.
	Provider string `json:"provider,omitempty"`
	// Where it is: both, differs, real_only or record_only.
	Class string `json:"class"`
	// What is wrong: agrees for nothing.
	Cause string `json:"cause"`
	// What mends it: none for nothing.
	Action string `json:"action"`
	// Whether it is certain enough to act.
	Verdict sandbox.Verdict `json:"verdict,omitempty"`
	// The state on record.
	RecordState *string `json:"record_state,omitempty"`
	// The state at the provider.
	State *string `json:"state,omitempty"`
	// How old it is.
	AgeSeconds *float64 `json:"age_seconds,omitempty"`
	// The task on record.
	TaskID *string `json:"task_id,omitempty"`
	// How often it was seen so.
	Observations int `json:"observations,omitempty"`
	// Why.
	Reason string `json:"reason"`
	// The judgement of a running one.
	Diagnosis *diagnosis `json:"diagnosis,omitempty"`
	// What the records say.
	RecordEvidence []evidence `json:"record_evidence,omitempty"`
	// What the provider says.
	RealEvidence []evidence `json:"real_evidence,omitempty"`
	// What became of it, with --fix.
	Outcome sandbox.Outcome `json:"outcome,omitempty"`
	// How long it took, with --fix.
	DurationSeconds *float64 `json:"duration_seconds,omitempty"`
	// What the outcome was seen by, with --fix.
	Evidence []evidence `json:"evidence,omitempty"`
}

// reconcileDocument is the document of reconcile.
type reconcileDocument struct {
	listOf[reconciled]

	// The run; `sbx cleanup show` shows it.
	RunID string `json:"run_id,omitempty"`
	// How many sandboxes are in each class.
	Classes *map[string]int `json:"classes,omitempty"`
	// How many differences settled themselves while they were looked at.
	Settled *int `json:"settled,omitempty"`
	// What would be done.
	Plan *plan `json:"plan,omitempty"`
	// What became of all, with --fix.
	Counts *counts `json:"counts,omitempty"`
}

// cronLine is one line of a crontab, or one unit of systemd.
type cronLine struct {
	// The layer.
	Layer string `json:"layer"`
	// When it runs.
	Schedule string `json:"schedule"`
	// What it runs.
	Command string `json:"command"`
	// The name of the unit; null in a crontab.
	Unit *string `json:"unit"`
}

// cronCheck says whether one layer runs.
type cronCheck struct {
	// The layer.
	Layer string `json:"layer"`
	// Whether it runs as often as it should.
	Verdict sandbox.Verdict `json:"verdict"`
	// The same in words.
	Message string `json:"message"`
	// How often it should run.
	ExpectedEvery string `json:"expected_every"`
	// The same in seconds.
	ExpectedEverySeconds float64 `json:"expected_every_seconds"`
	// When it last ran.
	LastRun *moment `json:"last_run"`
	// When it last succeeded.
	LastSuccess *moment `json:"last_success"`
	// How many it leaves alone because they are not yours, by profile.
	Unowned map[string]int `json:"unowned"`
	// The exit code of its last run.
	ExitCode *int `json:"exit_code"`
}
