package ops

import (
	"context"
	"fmt"
)

// Question is what an act wants answered before it begins.
type Question struct {
	// Targets are what would be changed, and why; none = the person has seen them.
	Targets   []PlannedEnd
	Objection string // what speaks against it; "" = nothing
	Prompt    string // what is asked, with a space at the end
	Word      string // the answer that is a yes
	Refusal   error  // what any other answer means; nil = ErrDeclined
}

// Asker puts a question to a person. False = the answer was another, or nobody can be asked.
type Asker func(ctx context.Context, q Question) (bool, error)

// Nobody can be asked.
func Nobody(context.Context, Question) (bool, error) { return false, nil }

// NewQuestion asks for a word, alike in all verbs: "type 26 to terminate them, anything else to
// cancel: ". An end of the input and Ctrl-C cancel, too.
func NewQuestion(word, what string) Question {
	return Question{Word: word, Prompt: fmt.Sprintf("type %s to %s, anything else to cancel: ", word, what)}
}

// AskEnd asks whether sandboxes may end. Shares says how many are where.
func AskEnd(word, shares string) Question { return NewQuestion(word, "terminate them"+shares) }
