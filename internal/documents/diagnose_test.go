package documents

import "sbx/internal/sandbox"

// investigation is what diagnose found.
type investigation struct {
	// true where nothing is wrong, false where something is, else unknown.
	Verdict sandbox.Verdict `json:"verdict"`
	// The verdict in one sentence.
	Reason string `json:"reason"`
	// When it was found.
	At *moment `json:"at"`
	// The sandbox that was investigated, PROFILE/ID; null for all.
	Ref *string `json:"ref"`
	// The task that was investigated; null for none.
	Task *string `json:"task"`
	// The five steps, in the order of the runbook.
	Steps []investigationStep `json:"steps"`
	// The stuck sandboxes by cause and provider, the most frequent cause first; empty for one
	// sandbox.
	Stuck []causeGroup `json:"stuck"`
	// The sandboxes that are not known to be stuck and have a likely cause of trouble, in the same
	// form; empty for one sandbox.
	Suspected []causeGroup `json:"suspected"`
	// The sandboxes that could not be judged; empty for one sandbox.
	Unjudged []string `json:"unjudged"`
	// The answers to the warnings of the runbook.
	Flags []warning `json:"flags"`
	// The possible causes: of one sandbox the likeliest first.
	Causes []possibleCause `json:"causes"`
	// What to type, the most useful first.
	Next []nextCommand `json:"next"`
}

// investigationStep is one step.
type investigationStep struct {
	// count, stuck, logs, resources or cleanup.
	ID string `json:"id"`
	// What it does.
	Title string `json:"title"`
	// The time that the runbook allows a person for it.
	ETASeconds *float64 `json:"eta_seconds"`
	// The time until its answers were there.
	TookSeconds *float64 `json:"took_seconds"`
	// The answers to its questions.
	Answers []investigationAnswer `json:"answers"`
}

// investigationAnswer answers one question.
type investigationAnswer struct {
	// Its number in the runbook.
	ID string `json:"id"`
	// The question.
	Question string `json:"question"`
	// The answer; "unknown: " and the reason where there is none.
	Answer string `json:"answer"`
	// Whether there is an answer.
	Known bool `json:"known"`
}

// causeGroup are sandboxes of one provider with one cause.
type causeGroup struct {
	// The profile.
	Provider string `json:"provider"`
	// The cause.
	Cause sandbox.Cause `json:"cause"`
	// How many there are.
	Count int `json:"count"`
	// Each of them, PROFILE/ID.
	Refs []string `json:"refs"`
	// Of stuck ones the command that plans their end, or terminates the only one; of suspected ones
	// the command that shows them.
	Command string `json:"command"`
}

// nextCommand is a command to type.
type nextCommand struct {
	// The whole line.
	Command string `json:"command"`
	// What for.
	Why string `json:"why"`
}
