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

// TaskColumns are the columns of a TaskListItem.
func TaskColumns() []output.Column[TaskRow] { return output.Columns(TaskRow.listItem, taskLooks()...) }

// TaskItemColumns are the columns of a TaskItem.
func TaskItemColumns() []output.Column[TaskRow] { return output.Columns(TaskRow.Item, taskLooks()...) }

// taskLooks is what people see differently.
func taskLooks() []output.Column[TaskRow] {
	return []output.Column[TaskRow]{
		{Name: "state", Tone: TaskRow.Tone}, {Name: "stop_reason", Text: TaskRow.endReason}, {Name: "created_at", Text: TaskRow.ageText},
	}
}

// Tone is the tone of a task's state.
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

func (r TaskRow) place() string {
	if a := r.Last(); a != nil {
		return a.Provider
	}
	return r.Spec.Provider
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

// canGoOn says that another task may continue in the kept sandbox.
func (r TaskRow) canGoOn() bool { return r.Kept != nil && !r.Spent && r.Now.Before(r.Kept.ExpiresAt) }

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

// logsCommand reads the output of the last attempt: that of its record where its sandbox is gone.
func (r TaskRow) logsCommand(last *task.Attempt) string {
	if !last.GoneAt.IsZero() && len(last.Tail) > 0 {
		return "sbx logs " + r.ID
	}
	return "sbx logs " + last.Ref().String() + " --tail 50"
}

func (r TaskRow) nextCommands() []string {
	last := r.Last()
	switch {
	case r.canGoOn():
		return []string{"sbx resume " + r.ID + " -- COMMAND"}
	case r.State == task.Completed, r.State == task.Stopped:
		return []string{}
	case !r.State.Final():
		return []string{"sbx stop " + r.ID}
	case last != nil && last.Sandbox != "" && r.outOfMemory():
		return []string{r.logsCommand(last), r.moreMemory()}
	case last != nil && last.Sandbox != "" && r.lastExit().Cause == sandbox.CauseProcessLimit:
		return []string{r.logsCommand(last), r.moreProcesses()}
	case last != nil && last.Sandbox != "" && last.StartedAt.IsZero() && r.lastExit().Class == sandbox.ClassEnvironment:
		return []string{"sbx run --workdir FOLDER -- COMMAND"} // no program was started that could have written a log
	case last != nil && last.Sandbox != "":
		return []string{r.logsCommand(last)}
	}
	return []string{"sbx doctor --provider " + r.Spec.Provider}
}
