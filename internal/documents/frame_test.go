package documents

import (
	"sbx/internal/fault"
	"sbx/internal/views"
)

// What documents have in common is described where it is made.
type (
	evidence      = views.EvidenceItem
	warning       = views.FlagItem
	openAlert     = views.AlertItem
	possibleCause = views.CauseItem
	incident      = views.EventItem
	statsRow      = views.StatsItem
	sandboxRow    = views.SandboxItem
)

// listOf is a document with many items.
type listOf[T any] struct {
	// Name and version of this form.
	Schema string `json:"schema"`
	// What was asked for, in the order of the table.
	Items []T `json:"items"`
	// False: something could not be listed. What is missing may exist.
	Complete bool `json:"complete"`
	// True: --limit left some out.
	Truncated bool `json:"truncated"`

	outcome
}

// itemOf is a document about one thing.
type itemOf[T any] struct {
	// Name and version of this form.
	Schema string `json:"schema"`
	// The thing; null where it could not be read.
	Item *T `json:"item"`

	outcome
}

// outcome closes every document.
type outcome struct {
	// What failed, each once.
	Errors []failure `json:"errors"`
	// A signal or --timeout ended the command before it had everything.
	Interrupted bool `json:"interrupted"`
}

// failure is one error.
type failure struct {
	// The profile that is at fault; empty for none in particular.
	Provider string `json:"provider"`
	// What kind of failure it is; `sbx help exit-codes` lists them.
	Kind fault.Kind `json:"kind"`
	// What went wrong, in one line.
	Message string `json:"message"`
	// What to try next; empty for nothing in particular.
	Hint string `json:"hint"`
	// The same call may succeed later.
	Retryable bool `json:"retryable"`
	// How long the provider asks to wait; null where it does not say.
	RetryAfterSeconds *float64 `json:"retry_after_seconds"`
}

// usageError is what a wrong use (exit 2) writes to standard error, where the formats json,
// ndjson or yaml are asked for; standard output is empty then.
type usageError struct {
	// Name and version of this form.
	Schema string `json:"schema"`
	// The error.
	Error failure `json:"error"`
	// The errors, in the form of every other document.
	Errors []failure `json:"errors"`
	// Always 2.
	ExitCode int `json:"exit_code"`
}

// moment is a time: RFC 3339 in UTC.
type moment string

// guard is one limit and how near a run is to it.
type guard struct {
	// The limit, with the profile where each has its own.
	Name string `json:"name"`
	// What is allowed.
	Limit *float64 `json:"limit"`
	// What the run comes to.
	Value *float64 `json:"value"`
	// False: the run is refused.
	OK bool `json:"ok"`
}

// counts says what became of the selected sandboxes.
type counts struct {
	// How many were selected.
	Selected int `json:"selected"`
	// Seen to have ended.
	Verified int `json:"verified"`
	// Ended before the request.
	AlreadyGone int `json:"already_gone"`
	// Accepted by the provider, and still in the old state when the wait was over.
	Accepted int `json:"accepted"`
	// In the state terminating for longer than the provider should need.
	Stuck int `json:"stuck"`
	// The request failed.
	Failed int `json:"failed"`
	// No longer what was selected when it was read again, so it was left alone.
	Changed int `json:"changed"`
	// Left alone, for the reason given.
	Skipped int `json:"skipped"`
	// Not reached before the run ended.
	NotAttempted int `json:"not_attempted"`
}
