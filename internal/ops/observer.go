package ops

import "context"

// Reporter takes what an operation says while it works.
type Reporter interface {
	// Note reports progress, Warn a problem beside the operation.
	Note(text string)
	Warn(text string)
	// Redact takes secrets out of a text that is kept.
	Redact(text string) string
}

// Observer is what an operation reports to while it works, and through which it asks what
// only people can answer. A command line, a dashboard and a test each have their own. An
// operation calls it from one goroutine at a time.
type Observer interface {
	Reporter
	// Progress begins to show how far something is that takes time.
	Progress(label string) Progress
	// Item takes one result as soon as it is known; each operation says of which types.
	Item(item any)
	// Attended says that Confirm can ask a person.
	Attended() bool
	// Confirm asks whether the operation may go on. Nobody there is a no.
	Confirm(ctx context.Context, q Question) (bool, error)
}

// Progress shows how far something is, until it is Done.
type Progress interface {
	Update(text string)
	Done()
}

// Question is what an operation asks before it goes on.
type Question struct {
	Objection string // what speaks against it; "" = nothing
	Prompt    string // what is asked: "end these 3? type y: "
	Word      string // the answer that is a yes
}
