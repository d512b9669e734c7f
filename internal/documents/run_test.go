package documents

import "sbx/internal/sandbox"

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
