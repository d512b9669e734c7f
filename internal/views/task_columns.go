package views

import (
	"cmp"
	"strings"
	"time"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// TaskRow is a task as this room shows it.
type TaskRow struct {
	task.Task
	Alive sandbox.Verdict // its owner
	Spent bool            // what it has kept was used or ended since
	Now   time.Time
}

// TaskRowOf is a task as it is shown.
func TaskRowOf(s ops.TaskState, now time.Time) TaskRow {
	return TaskRow{Task: s.Task, Alive: s.Alive, Spent: s.Spent, Now: now}
}

// taskSummary are the columns that `tasks` and `run` have in common (CLI.md, JSON).
func taskSummary() []output.Column[TaskRow] {
	return []output.Column[TaskRow]{
		{Name: "task", Whole: true, Value: func(r TaskRow) any { return r.ID }},
		{Name: "key", Level: output.Wide, Value: func(r TaskRow) any { return TextOrNil(r.Key) }},
		{Name: "state", Whole: true, Value: func(r TaskRow) any { return string(r.State) }, Tone: TaskRow.Tone},
		{Name: "phase", Value: func(r TaskRow) any { return TextOrNil(string(r.Phase)) }},
		{Name: "stop_reason", Head: "WHY", Value: func(r TaskRow) any { return TextOrNil(string(r.Reason)) }, Text: TaskRow.endReason},
		{Name: "pending_reason", Head: "WAITS FOR", Value: func(r TaskRow) any { return TextOrNil(r.Waits) }},
		{Name: "provider", Value: func(r TaskRow) any { return r.placeOrNil() }},
		{Name: "sandbox", Whole: true, Value: func(r TaskRow) any { return r.sandboxOrNil() }, Spare: true},
	}
}

func taskRest() []output.Column[TaskRow] {
	return []output.Column[TaskRow]{
		{Name: "publish", Level: output.Extra, Value: TaskRow.publishObject},
		{Name: "warm", Level: output.Extra, Value: func(r TaskRow) any { return r.Spec.Warm }},
		{Name: "terminated_verified", Level: output.Wide, Value: func(r TaskRow) any { return !r.VerifiedAt.IsZero() && !r.canGoOn() }},
		{Name: "kept", Level: output.Extra, Value: TaskRow.keptObject},
		{Name: "resumed_from", Level: output.Extra, Value: func(r TaskRow) any { return TextOrNil(r.ResumedFrom) }},
		{Name: "created_at", Head: "AGE", Value: func(r TaskRow) any { return output.Time(r.CreatedAt) }, Text: TaskRow.ageText},
		{Name: "deadline_at", Level: output.Wide, Value: func(r TaskRow) any { return output.Time(r.DeadlineAt) }},
		{Name: "owner", Level: output.Extra, Value: TaskRow.ownerObject},
	}
}

// TaskColumns are those of `sbx tasks`.
func TaskColumns() []output.Column[TaskRow] {
	return append(append(taskSummary(),
		output.Column[TaskRow]{Name: "attempt", Value: func(r TaskRow) any { return len(r.Attempts) }},
		output.Column[TaskRow]{Name: "attempts_max", Level: output.Wide, Value: func(r TaskRow) any { return r.Spec.Attempts }},
		output.Column[TaskRow]{Name: "class", Value: func(r TaskRow) any { return TextOrNil(string(r.lastExit().Class)) }},
		output.Column[TaskRow]{Name: "cause", Value: func(r TaskRow) any { return TextOrNil(string(r.lastExit().Cause)) }},
		output.Column[TaskRow]{Name: "exit_code", Head: "EXIT", Value: func(r TaskRow) any { return r.lastExit().Code }},
	), taskRest()...)
}

// TaskItem are those of `run` and `tasks show`.
func TaskItem() []output.Column[TaskRow] {
	columns := append(taskSummary(), output.Column[TaskRow]{Name: "attempts", Level: output.Extra, Value: TaskRow.attemptList})
	columns = append(columns, taskRest()...)
	return append(columns,
		output.Column[TaskRow]{Name: "timeline", Level: output.Extra, Value: TaskRow.timelineList},
		output.Column[TaskRow]{Name: "why", Level: output.Extra, Value: func(r TaskRow) any { return TextOrNil(r.Refused) }},
		output.Column[TaskRow]{Name: "next", Level: output.Extra, Value: func(r TaskRow) any { return r.nextCommands() }},
	)
}

// TextOrNil is nil for the empty text.
func TextOrNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// Tone is that of a task's state.
func (r TaskRow) Tone() output.Tone {
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

// endReason is the reason of a stop, or that the runner died.
func (r TaskRow) endReason() string {
	if !r.State.Final() && r.Alive == sandbox.False {
		return "runner died"
	}
	return cmp.Or(string(r.Reason), "-")
}

func (r TaskRow) placeOrNil() any {
	if a := r.Last(); a != nil {
		return a.Provider
	}
	return r.Spec.Provider
}

func (r TaskRow) sandboxOrNil() any {
	if ref, made := r.SandboxRef(); made {
		return ref.String()
	}
	return nil
}

// SandboxRef is the sandbox of the last attempt; false = it has made none.
func (r TaskRow) SandboxRef() (sandbox.Ref, bool) {
	a := r.Last()
	if a == nil || a.Sandbox == "" {
		return sandbox.Ref{}, false
	}
	return a.Ref(), true
}

// SearchText is what a task is found by.
func (r TaskRow) SearchText() string {
	ref, _ := r.SandboxRef()
	return strings.Join([]string{r.ID, r.Key, string(r.State), r.endReason(), r.Waits, r.Spec.Description, ref.String()}, " ")
}

// Why is in one sentence why the task has not succeeded, or what it waits for; "" = nothing.
func (r TaskRow) Why() string {
	switch {
	case r.Waits != "":
		return "waits for " + r.Waits
	case r.Refused != "":
		return r.Refused
	case r.State == task.Failed || r.State == task.TimedOut:
		return r.causeWords()
	}
	return ""
}

func (r TaskRow) lastExit() task.Exit {
	if a := r.Last(); a != nil && a.Exit != nil {
		return *a.Exit
	}
	return task.Exit{}
}

func (r TaskRow) ageText() string { return sandbox.FormatDuration(r.Now.Sub(r.CreatedAt)) }

func (r TaskRow) publishObject() any {
	if !r.Spec.Publishes() {
		return nil
	}
	p := r.Publish
	return output.Fields{
		{Key: "state", Value: cmp.Or(string(p.State), "none")},
		{Key: "target", Value: TextOrNil(cmp.Or(p.Target, r.Spec.Push, r.Spec.Publish))},
		{Key: "commit", Value: TextOrNil(p.Commit)},
		{Key: "at", Value: output.Time(p.At)},
		{Key: "fence", Value: TextOrNil(p.Fence)},
		{Key: "message", Value: TextOrNil(p.Message)},
	}
}

func (r TaskRow) keptObject() any {
	if r.Kept == nil {
		return nil
	}
	return output.Fields{{Key: "ref", Value: r.Kept.Ref.String()}, {Key: "expires_at", Value: output.Time(r.Kept.ExpiresAt)}, {Key: "waits", Value: r.canGoOn()}}
}

// canGoOn says that another task may continue in the kept sandbox.
func (r TaskRow) canGoOn() bool { return r.Kept != nil && !r.Spent && r.Now.Before(r.Kept.ExpiresAt) }

func (r TaskRow) ownerObject() any {
	if r.Owner.PID == 0 {
		return nil
	}
	return output.Fields{{Key: "host", Value: r.Owner.Host}, {Key: "pid", Value: r.Owner.PID}, {Key: "alive", Value: string(r.Alive)}}
}

func (r TaskRow) attemptList() any {
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
	if d, known := AttemptLength(a); known {
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
		{Key: "raw_exit", Value: TextOrNil(e.Raw)},
		{Key: "signal", Value: TextOrNil(e.Signal)},
		{Key: "class", Value: TextOrNil(string(e.Class))},
		{Key: "cause", Value: TextOrNil(string(e.Cause))},
		{Key: "confidence", Value: TextOrNil(string(e.Confidence))},
		{Key: "evidence", Value: EvidenceList(e.Evidence)},
		{Key: "duration_seconds", Value: length},
		{Key: "messages", Value: a.Messages},
		{Key: "retry", Value: retry},
		{Key: "limit", Value: TextOrNil(string(a.Expired))},
		{Key: "memory_mb", Value: PositiveOrNil(a.MemoryMB)},
		{Key: "peak_mb", Value: a.PeakMB},
		{Key: "oom_kills", Value: a.OOMKills},
		{Key: "gone_at", Value: output.Time(a.GoneAt)},
		{Key: "gone", Value: TextOrNil(a.Gone)},
	}
}

// PositiveOrNil is nil for what is not above zero.
func PositiveOrNil(n int64) any {
	if n <= 0 {
		return nil
	}
	return n
}

// AttemptLength is how long an attempt's program ran, or the whole attempt where no
// program did.
func AttemptLength(a task.Attempt) (time.Duration, bool) {
	since := a.StartedAt
	if since.IsZero() {
		since = a.IntentAt
	}
	if a.EndedAt.IsZero() {
		return 0, false
	}
	return a.EndedAt.Sub(since), true
}

func (r TaskRow) timelineList() any {
	list := make([]any, len(r.Notes))
	for i, n := range r.Notes {
		list[i] = output.Fields{{Key: "at", Value: output.Time(n.At)}, {Key: "event", Value: n.Event}, {Key: "detail", Value: TextOrNil(n.Detail)}}
	}
	return list
}

func (r TaskRow) nextCommands() []string {
	last := r.Last()
	switch {
	case r.canGoOn():
		return []string{"sbx resume " + r.ID + " -- COMMAND"}
	case r.State == task.Completed, r.State == task.Stopped:
		return []string{}
	case !r.State.Final() && r.Phase == task.Stopping:
		return []string{"sbx stop " + r.ID}
	case !r.State.Final():
		return []string{"sbx stop " + r.ID}
	case last != nil && last.Sandbox != "" && r.outOfMemory():
		return []string{"sbx logs " + last.Ref().String() + " --tail 50", r.moreMemory()}
	case last != nil && last.Sandbox != "" && r.lastExit().Cause == sandbox.CauseProcessLimit:
		return []string{"sbx logs " + last.Ref().String() + " --tail 50", r.moreProcesses()}
	case last != nil && last.Sandbox != "":
		return []string{"sbx logs " + last.Ref().String() + " --tail 50"}
	}
	return []string{"sbx doctor --provider " + r.Spec.Provider}
}
