package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"sbx/internal/fault"
)

// BatchTally counts what became of a batch.
type BatchTally struct {
	Jobs, Ended, Completed, Before, Failed int
	codes                                  map[int]int // of those that failed
	first                                  error       // a verdict of the first that failed
}

func (t *BatchTally) addOutcome(o BatchOutcome) {
	t.Ended++
	switch {
	case o.Verdict == nil && o.Before:
		t.Completed++
		t.Before++
	case o.Verdict == nil:
		t.Completed++
	default:
		t.Failed++
		t.codes[ExitCode(o.Verdict)]++
		t.first = cmp.Or(t.first, o.Verdict)
	}
}

// ExitCode is the code of a process that ends with this error.
func ExitCode(err error) int {
	if own, ok := errors.AsType[ProgramExit](err); ok {
		return own.Code
	}
	return fault.ExitCode(err)
}

// exitVerdict is the error that a batch's end is for the process: nothing when all is
// completed, the one thing that all failed with, else that a part of it failed.
func (t *BatchTally) exitVerdict(ctx context.Context) error {
	switch {
	case t.Failed == 0 && t.Ended == t.Jobs:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case t.Failed == t.Jobs && len(t.codes) == 1:
		return t.first
	}
	return fault.New(fault.KindPartial, "%d of %d tasks did not complete", t.Jobs-t.Completed, t.Jobs).
		WithHint("`sbx tasks show TASK` has the evidence of each; --retry-failed launches them once more")
}

// Text is how far the batch is.
func (t *BatchTally) Text() string {
	words := []string{fmt.Sprintf("%d of %d done", t.Ended, t.Jobs)}
	if t.Failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", t.Failed))
	}
	return strings.Join(words, ", ")
}
