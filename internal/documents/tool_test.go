package documents

import "sbx/internal/sandbox"

// drillDocument is the document of drill.
type drillDocument struct {
	// Name and version of this form.
	Schema string `json:"schema"`
	// The run; empty where nothing was staged.
	Run string `json:"run,omitempty"`
	// What enforces limits on this machine; empty where nothing was staged.
	Enforcement string `json:"enforcement,omitempty"`
	// The staged sandboxes.
	Cases *[]drillCase `json:"cases,omitempty"`
	// The steps of the runbook that read something.
	Steps *[]drillStep `json:"steps,omitempty"`
	// The run of the runbook; null where none was begun.
	Runbook *drillRunbook `json:"runbook,omitempty"`
	// How many staged sandboxes are left.
	LeftBehind *int `json:"left_behind,omitempty"`

	outcome
}

// drillCase is one staged sandbox.
type drillCase struct {
	// The scenario.
	Name string `json:"name"`
	// PROFILE/ID.
	Ref string `json:"ref"`
	// The cause that was found; empty for none.
	Cause string `json:"cause"`
	// The cause that was staged; empty for none.
	Expected string `json:"expected"`
	// How sure the found cause is; empty for none.
	Confidence string `json:"confidence"`
	// What was seen.
	Evidence []evidence `json:"evidence"`
	// What became of it.
	Outcome sandbox.Outcome `json:"outcome"`
	// True: the cause was found, and it was ended.
	OK bool `json:"ok"`
}

// drillRunbook is the run of a drill's runbook.
type drillRunbook struct {
	// The runbook.
	ID string `json:"id"`
	// The id of the run; null with --keep, which only looks.
	RunID *string `json:"run_id"`
	// done, failed, waiting or interrupted.
	State string `json:"state"`
	// Whether every act has had its effect and every check of the verification holds.
	Verdict sandbox.Verdict `json:"verdict"`
	// How long the run took.
	TookSeconds float64 `json:"took_seconds"`
	// The part of that which is no read, no wait and no act: the engine itself.
	EngineSeconds float64 `json:"engine_seconds"`
	// All of its steps.
	Steps []runStep `json:"steps"`
}

// drillStep is one step of the runbook.
type drillStep struct {
	// Its name.
	ID string `json:"id"`
	// What it does.
	Title string `json:"title"`
	// How long it should take.
	ETASeconds float64 `json:"eta_seconds"`
	// How long it took.
	TookSeconds float64 `json:"took_seconds"`
	// What it found.
	Answers []string `json:"answers"`
}
