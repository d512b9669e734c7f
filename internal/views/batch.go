package views

import (
	"fmt"
	"time"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// outcomeRow is an outcome as a task is shown.
func outcomeRow(o ops.BatchOutcome, now time.Time) TaskRow {
	return TaskRow{Task: o.Task, Now: now, Alive: sandbox.Unknown}
}

// OutcomeColumns are those of a task.
func OutcomeColumns(now time.Time) []output.Column[ops.BatchOutcome] {
	return output.Of(TaskItem(), func(o ops.BatchOutcome) TaskRow { return outcomeRow(o, now) })
}

// BatchSummary is the last line of a batch for people.
func BatchSummary(t ops.BatchTally) string {
	text := fmt.Sprintf("%d tasks: %d completed", t.Jobs, t.Completed)
	if t.Before > 0 {
		text += fmt.Sprintf(" (%d of them before; --again launches them anew)", t.Before)
	}
	if t.Failed > 0 {
		text += fmt.Sprintf(", %d did not", t.Failed)
	}
	if n := t.Jobs - t.Ended; n > 0 {
		text += fmt.Sprintf(", %d not launched", n)
	}
	return text
}

// OutcomeAside is what people read of an outcome, if anything is new to them.
func OutcomeAside(o ops.BatchOutcome, now time.Time) string {
	if o.Before && o.Verdict == nil {
		return ""
	}
	return outcomeLine(o, now)
}

func outcomeLine(o ops.BatchOutcome, now time.Time) string {
	r := outcomeRow(o, now)
	text := o.Label + " (" + o.Task.ID + "): " + ops.WithDetail(string(o.Task.State), r.Detail())
	if o.Before {
		text += " before"
	}
	if a := o.Task.Last(); a != nil && o.Task.State != task.Completed {
		text += ", " + AttemptLine(*a)
	}
	if len(o.Task.Attempts) > 1 {
		text += fmt.Sprintf(", %d attempts", len(o.Task.Attempts))
	}
	if o.Verdict != nil && !o.Task.State.Final() {
		text += ": " + o.Verdict.Error()
	}
	return text
}
