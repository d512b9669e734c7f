package ops

import (
	"context"
	"fmt"

	"sbx/internal/fault"
)

// Question is what an operation asks before it goes on.
type Question struct {
	// Targets are what would be changed, and why; none = the person has seen them.
	Targets   []PlannedEnd
	Objection string // what speaks against it; "" = nothing
	Prompt    string // what is asked, with a space at the end
	Word      string // the answer that is a yes
}

// NewQuestion asks for a word, alike in all verbs: "type 26 to terminate them, anything else to
// cancel: ". An end of the input and Ctrl-C cancel, too.
func NewQuestion(word, what string) Question {
	return Question{Word: word, Prompt: fmt.Sprintf("type %s to %s, anything else to cancel: ", word, what)}
}

// AskEnd asks whether sandboxes may end. Shares says how many are where.
func AskEnd(word, shares string) Question { return NewQuestion(word, "terminate them"+shares) }

// ConfirmBegun asks whether what words named by the beginnings of ids is meant. The prompt of the question is what
// happens to it: "terminate them".
func ConfirmBegun(ctx context.Context, watch Observer, q Question) error {
	asked := NewQuestion("y", q.Prompt)
	q.Word, q.Prompt = asked.Word, asked.Prompt
	allowed, err := watch.Confirm(ctx, q)
	if err == nil && !allowed {
		err = fault.New(fault.KindRefused, "the beginning of an id was not confirmed").WithHint("write the whole id; `sbx ls -o name` and `sbx tasks -o name` print them")
	}
	return err
}
