package documents

import (
	"sbx/internal/output"
	"sbx/internal/views"
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

// plannedListOf is what became of each sandbox, or without items the plan of it.
type plannedListOf[T any] struct {
	// Name and version of this form.
	Schema string `json:"schema"`
	// What became of each.
	Items []T `json:"items,omitempty"`
	// False: something could not be listed, and nothing of it was selected.
	Complete bool `json:"complete,omitempty"`
	// Always false.
	Truncated bool `json:"truncated,omitempty"`

	outcome
}

// freeFrame is one object.
type freeFrame struct {
	// Name and version of this form.
	Schema string `json:"schema"`

	outcome
}

// runFrame is one item, or items with --file and --compare.
type runFrame struct {
	// Name and version of this form.
	Schema string `json:"schema"`
	// The task; null where none was launched.
	Item *views.TaskItem `json:"item,omitempty"`
	// The tasks of --file, or the providers of --compare.
	Items []extended[views.TaskItem, views.CompareItem] `json:"items,omitempty"`
	// False: some of them were not launched.
	Complete bool `json:"complete,omitempty"`
	// Always false.
	Truncated bool `json:"truncated,omitempty"`

	outcome
}

// extended is an item of one type, to which another may add keys.
type extended[A, B any] struct {
	A A
	B B
}

// either is an item of one type or of another: a key that only one has is optional.
type either[A, B any] struct {
	A A
	B B
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
	Errors []output.Failure `json:"errors"`
	// A signal or --timeout ended the command before it had everything.
	Interrupted bool `json:"interrupted"`
}

// usageError is what a wrong use (exit 2) writes to standard error, where the formats json,
// ndjson or yaml are asked for; standard output is empty then.
type usageError struct {
	// Name and version of this form.
	Schema string `json:"schema"`
	// The error.
	Error output.Failure `json:"error"`
	// The errors, in the form of every other document.
	Errors []output.Failure `json:"errors"`
	// Always 2.
	ExitCode int `json:"exit_code"`
}

// moment is a time: RFC 3339 in UTC.
type moment string
