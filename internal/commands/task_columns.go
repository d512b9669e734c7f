package commands

import (
	"cmp"
	"time"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// taskRow is a task as this room shows it.
type taskRow struct {
	task.Task
	alive sandbox.Verdict // its owner
	spent bool            // what it has kept was used or ended since
	now   time.Time
}

// taskSummary are the columns that `tasks` and `run` have in common (CLI.md, JSON).
func taskSummary() []output.Column[taskRow] {
	return []output.Column[taskRow]{
		{Name: "task", Value: func(r taskRow) any { return r.ID }},
		{Name: "key", Level: output.Wide, Value: func(r taskRow) any { return textOrNil(r.Key) }},
		{Name: "state", Value: func(r taskRow) any { return string(r.State) }, Tone: taskRow.tone},
		{Name: "phase", Value: func(r taskRow) any { return textOrNil(string(r.Phase)) }},
		{Name: "stop_reason", Head: "WHY", Value: func(r taskRow) any { return textOrNil(string(r.Reason)) }, Text: taskRow.why},
		{Name: "pending_reason", Head: "WAITS FOR", Value: func(r taskRow) any { return textOrNil(r.Waits) }},
		{Name: "provider", Value: func(r taskRow) any { return r.place() }},
		{Name: "sandbox", Value: func(r taskRow) any { return r.sandbox() }, Spare: true},
	}
}

// taskRest are the columns after the attempts.
func taskRest() []output.Column[taskRow] {
	return []output.Column[taskRow]{
		{Name: "publish", Level: output.Extra, Value: taskRow.publishObject},
		{Name: "warm", Level: output.Extra, Value: func(r taskRow) any { return r.Spec.Warm }},
		{Name: "terminated_verified", Level: output.Wide, Value: func(r taskRow) any { return !r.VerifiedAt.IsZero() && !r.waits() }},
		{Name: "kept", Level: output.Extra, Value: taskRow.keptObject},
		{Name: "resumed_from", Level: output.Extra, Value: func(r taskRow) any { return textOrNil(r.ResumedFrom) }},
		{Name: "created_at", Head: "AGE", Value: func(r taskRow) any { return output.Time(r.CreatedAt) }, Text: taskRow.age},
		{Name: "deadline_at", Level: output.Wide, Value: func(r taskRow) any { return output.Time(r.DeadlineAt) }},
		{Name: "owner", Level: output.Extra, Value: taskRow.ownerObject},
	}
}

// taskColumns are those of `sbx tasks`.
func taskColumns() []output.Column[taskRow] {
	return append(append(taskSummary(),
		output.Column[taskRow]{Name: "attempt", Value: func(r taskRow) any { return len(r.Attempts) }},
		output.Column[taskRow]{Name: "attempts_max", Level: output.Wide, Value: func(r taskRow) any { return r.Spec.Attempts }},
		output.Column[taskRow]{Name: "class", Value: func(r taskRow) any { return textOrNil(string(r.lastExit().Class)) }},
		output.Column[taskRow]{Name: "cause", Value: func(r taskRow) any { return textOrNil(string(r.lastExit().Cause)) }},
		output.Column[taskRow]{Name: "exit_code", Head: "EXIT", Value: func(r taskRow) any { return r.lastExit().Code }},
	), taskRest()...)
}

// taskItem are those of `run` and `tasks show`.
func taskItem() []output.Column[taskRow] {
	columns := append(taskSummary(), output.Column[taskRow]{Name: "attempts", Level: output.Extra, Value: taskRow.attemptList})
	columns = append(columns, taskRest()...)
	return append(columns,
		output.Column[taskRow]{Name: "timeline", Level: output.Extra, Value: taskRow.timelineList},
		output.Column[taskRow]{Name: "why", Level: output.Extra, Value: func(r taskRow) any { return textOrNil(r.Refused) }},
		output.Column[taskRow]{Name: "next", Level: output.Extra, Value: func(r taskRow) any { return r.next() }},
	)
}

func textOrNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func (r taskRow) tone() output.Tone {
	switch r.State {
	case task.Completed:
		return output.Good
	case task.Failed, task.TimedOut:
		return output.Bad
	case task.Stopped:
		return output.Muted
	case task.Pending, task.Assigned, task.Running:
	}
	return output.Plain
}

// why is the reason of a stop; of a task that nobody goes on with, that.
func (r taskRow) why() string {
	if !r.State.Over() && r.alive == sandbox.False {
		return "runner died"
	}
	return cmp.Or(string(r.Reason), "-")
}

func (r taskRow) place() any {
	if a := r.Last(); a != nil {
		return a.Provider
	}
	return r.Spec.Provider
}

func (r taskRow) sandbox() any {
	if a := r.Last(); a != nil && a.Sandbox != "" {
		return a.Ref().String()
	}
	return nil
}

func (r taskRow) lastExit() task.Exit {
	if a := r.Last(); a != nil && a.Exit != nil {
		return *a.Exit
	}
	return task.Exit{}
}

func (r taskRow) age() string { return sandbox.FormatDuration(r.now.Sub(r.CreatedAt)) }

func (r taskRow) publishObject() any {
	if !r.Spec.Publishes() {
		return nil
	}
	p := r.Publish
	return output.Fields{
		{Key: "state", Value: cmp.Or(string(p.State), "none")},
		{Key: "target", Value: textOrNil(cmp.Or(p.Target, r.Spec.Push, r.Spec.Publish))},
		{Key: "commit", Value: textOrNil(p.Commit)},
		{Key: "at", Value: output.Time(p.At)},
		{Key: "fence", Value: textOrNil(p.Fence)},
		{Key: "message", Value: textOrNil(p.Message)},
	}
}

func (r taskRow) keptObject() any {
	if r.Kept == nil {
		return nil
	}
	return output.Fields{{Key: "ref", Value: r.Kept.Ref.String()}, {Key: "expires_at", Value: output.Time(r.Kept.ExpiresAt)}, {Key: "waits", Value: r.waits()}}
}

// waits says that somebody may go on in what the task has kept.
func (r taskRow) waits() bool { return r.Kept != nil && !r.spent && r.now.Before(r.Kept.ExpiresAt) }

func (r taskRow) ownerObject() any {
	if r.Owner.PID == 0 {
		return nil
	}
	return output.Fields{{Key: "host", Value: r.Owner.Host}, {Key: "pid", Value: r.Owner.PID}, {Key: "alive", Value: string(r.alive)}}
}

func (r taskRow) attemptList() any {
	list := make([]any, len(r.Attempts))
	for i, a := range r.Attempts {
		list[i] = attemptObject(a)
	}
	return list
}

func attemptObject(a task.Attempt) output.Fields {
	e := task.Exit{}
	if a.Exit != nil {
		e = *a.Exit
	}
	var sandboxRef, length, retry any
	if a.Sandbox != "" {
		sandboxRef = a.Ref().String()
	}
	if d, known := attemptLength(a); known {
		length = output.Seconds(d)
	}
	if a.Retry != nil {
		retry = output.Fields{
			{Key: "again", Value: a.Retry.Again},
			{Key: "why", Value: a.Retry.Why},
			{Key: "delay_seconds", Value: output.Seconds(a.Retry.Delay)},
			{Key: "free", Value: a.Retry.Free},
		}
	}
	return output.Fields{
		{Key: "n", Value: a.N},
		{Key: "sandbox", Value: sandboxRef},
		{Key: "reused", Value: a.Reused},
		{Key: "exit_code", Value: e.Code},
		{Key: "raw_exit", Value: textOrNil(e.Raw)},
		{Key: "signal", Value: textOrNil(e.Signal)},
		{Key: "class", Value: textOrNil(string(e.Class))},
		{Key: "cause", Value: textOrNil(string(e.Cause))},
		{Key: "confidence", Value: textOrNil(string(e.Confidence))},
		{Key: "evidence", Value: evidence(e.Evidence)},
		{Key: "duration_seconds", Value: length},
		{Key: "messages", Value: a.Messages},
		{Key: "retry", Value: retry},
		{Key: "limit", Value: textOrNil(string(a.Expired))},
		{Key: "memory_mb", Value: positiveOrNil(a.MemoryMB)},
		{Key: "peak_mb", Value: a.PeakMB},
		{Key: "oom_kills", Value: a.OOMKills},
		{Key: "gone_at", Value: output.Time(a.GoneAt)},
		{Key: "gone", Value: textOrNil(a.Gone)},
	}
}

func positiveOrNil(n int64) any {
	if n <= 0 {
		return nil
	}
	return n
}

// attemptLength is how long an attempt's program ran, or the whole attempt where no
// program did.
func attemptLength(a task.Attempt) (time.Duration, bool) {
	since := a.StartedAt
	if since.IsZero() {
		since = a.IntentAt
	}
	if a.EndedAt.IsZero() {
		return 0, false
	}
	return a.EndedAt.Sub(since), true
}

func (r taskRow) timelineList() any {
	list := make([]any, len(r.Notes))
	for i, n := range r.Notes {
		list[i] = output.Fields{{Key: "at", Value: output.Time(n.At)}, {Key: "event", Value: n.Event}, {Key: "detail", Value: textOrNil(n.Detail)}}
	}
	return list
}

// next is what to type next.
func (r taskRow) next() []string {
	last := r.Last()
	switch {
	case r.waits():
		return []string{"sbx resume " + r.ID + " -- COMMAND"}
	case r.State == task.Completed, r.State == task.Stopped:
		return []string{}
	case !r.State.Over() && r.Phase == task.Stopping:
		return []string{"sbx stop " + r.ID}
	case !r.State.Over():
		return []string{"sbx stop " + r.ID}
	case last != nil && last.Sandbox != "" && r.outOfMemory():
		return []string{"sbx logs " + last.Ref().String() + " --tail 50", r.moreMemory()}
	case last != nil && last.Sandbox != "":
		return []string{"sbx logs " + last.Ref().String() + " --tail 50"}
	}
	return []string{"sbx doctor --provider " + r.Spec.Provider}
}
