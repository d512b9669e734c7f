package views

import (
	"fmt"
	"strconv"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// SandboxRow is one line of ls: a sandbox and the judgement over it.
type SandboxRow struct {
	sandbox.Sandbox
	Verdict triage.Verdict

	Now time.Time
}

// SandboxRowOf is a judged sandbox as a line of ls.
func SandboxRowOf(j fleet.Judged, now time.Time) SandboxRow {
	return SandboxRow{Sandbox: j.Sandbox, Verdict: j.Verdict, Now: now}
}

// SandboxColumns are S of CLI.md, in its order.
func SandboxColumns() []output.Column[SandboxRow] {
	type row = SandboxRow
	return append([]output.Column[row]{
		{Name: "ref", Value: func(r row) any { return r.Ref().String() }},
		{Name: "provider", Level: output.Extra, Value: func(r row) any { return r.Provider }},
		{Name: "provider_type", Level: output.Extra, Value: func(r row) any { return r.ProviderType }},
		{Name: "id", Level: output.Extra, Value: func(r row) any { return r.ID }},
		{Name: "name", Value: func(r row) any { return r.Name }},
		{Name: "state", Value: func(r row) any { return r.State }},
		{Name: "raw_state", Level: output.Extra, Value: func(r row) any { return r.RawState }},
		{Name: "created_at", Level: output.Wide, Value: func(r row) any { return output.Time(r.CreatedAt) }},
		{Name: "started_at", Level: output.Extra, Value: func(r row) any { return output.Time(r.StartedAt) }},
		{Name: "age_seconds", Head: "AGE", Value: func(r row) any { return r.age() }},
		{Name: "age_source", Level: output.Extra, Value: func(r row) any { _, s := r.Age(r.Now); return s }},
		{Name: "last_activity_at", Level: output.Extra, Value: func(r row) any { return output.Time(r.LastActivityAt) }},
		{Name: "idle_seconds", Head: "IDLE", Spare: true, Value: func(r row) any { return r.idle() }},
		{Name: "activity", Level: output.Wide, Value: func(r row) any { return r.Verdict.Activity }},
		{Name: "expires_at", Head: "EXPIRES", Level: output.Wide, Value: func(r row) any { return output.Time(r.ExpiresAt) }},
		{Name: "template", Level: output.Wide, Value: func(r row) any { return r.Template }},
		{Name: "agent_type", Head: "AGENT", Level: output.Wide, Value: func(r row) any { return r.AgentType }},
		{Name: "task_id", Head: "TASK", Value: func(r row) any { return r.TaskID }},
		{Name: "owner", Level: output.Wide, Value: func(r row) any { return r.Owner }},
		{Name: "labels", Level: output.Wide, Value: func(r row) any { return copyLabels(r.Labels) }},
		{Name: "cpu", Level: output.Wide, Value: func(r row) any { return r.Limits.CPU }},
		{Name: "memory_mb", Head: "MEM LIMIT", Level: output.Wide, Value: func(r row) any { return output.MiB(r.Limits.MemoryBytes) }},
		{Name: "disk_mb", Level: output.Extra, Value: func(r row) any { return output.MiB(r.Limits.DiskBytes) }},
		{Name: "exit_code", Head: "EXIT", Value: func(r row) any { return r.exitCode() }},
		{Name: "stuck", Value: func(r row) any { return r.Verdict.Stuck }},
		{Name: "stuck_reason", Head: "WHY", Level: output.Wide, Value: func(r row) any { return r.Verdict.Say() }},
	}, verdictColumns(output.Wide, func(r row) triage.Verdict { return r.Verdict })...)
}

func (r SandboxRow) age() any {
	age, source := r.Age(r.Now)
	if source == sandbox.AgeUnknown {
		return nil
	}
	return output.Seconds(age)
}

func (r SandboxRow) idle() any {
	idle, known := r.Idle(r.Now)
	if !known || r.State.Ended() {
		return nil
	}
	return output.Seconds(idle)
}

func (r SandboxRow) exitCode() *int {
	if r.Exit == nil {
		return nil
	}
	return r.Exit.Code
}

func copyLabels(l map[string]string) map[string]string {
	if l == nil {
		return map[string]string{}
	}
	return l
}

// Ending describes in one line the state of the sandbox and, if it has ended, how.
func (r SandboxRow) Ending() string {
	if !r.State.Ended() {
		return r.Ref().String() + " is " + string(r.State)
	}
	text := r.Ref().String() + " has ended: " + string(r.State)
	if e := r.Exit; e != nil {
		text += exitWords(*e)
	}
	if lived := r.EndedAt.Sub(r.CreatedAt); !r.CreatedAt.IsZero() && lived >= time.Second {
		text += ", after " + sandbox.FormatDuration(lived)
	}
	return text
}

func exitWords(e sandbox.Exit) string {
	text := ""
	if e.Code != nil {
		text += ", exit code " + strconv.Itoa(*e.Code)
	}
	if e.Signal != "" {
		text += " by " + e.Signal
	}
	switch e.Cause {
	case sandbox.CauseNone:
	case sandbox.CauseUnknown:
		text += ", cause unknown"
	default:
		text += ", cause " + string(e.Cause) + " (" + string(e.Confidence) + ")"
	}
	return text
}

// EmptyListHint says what could be done where a listing has nothing to show: of which
// profiles it is, whether selectors chose, and whether the only profile runs its sandboxes
// on this machine.
func EmptyListHint(program string, profiles []string, selected, here bool) string {
	switch {
	case selected:
		return "no sandbox matches; `" + program + " ls` without selectors shows the others"
	case len(profiles) == 1 && here:
		return "no sandboxes; only `" + profiles[0] + "` is configured: start one with `" + program + " create -- COMMAND`, or stage an incident with `" + program + " drill`"
	}
	return "no sandboxes; `" + program + " ls --all` also shows ended ones"
}

// FinishSandboxList closes a listing, and says what was not judged. Program is what sbx is
// called.
func FinishSandboxList(list *output.List[SandboxRow], r *ops.ListResult, program string, now time.Time) error {
	if r.Truncated {
		list.Truncated()
	}
	finishUnconfirmed(list, r, now)
	if !r.Counted {
		list.Set("unjudged", nil) // the rest was not counted
		list.Set("undecided", nil)
		return list.Close()
	}
	list.Set("unjudged", r.Census.Unjudged)
	list.Remark(StuckSummary(r.Census, program, "ls --look"))
	list.Set("undecided", r.Undecided)
	for _, line := range ops.UndecidedLines(r.Undecided) {
		list.Remark(line)
	}
	if r.Ended > 0 {
		list.WhenEmpty("")
		list.Remark(fmt.Sprintf("%d ended not shown; --all shows them", r.Ended))
	}
	return list.Close()
}

// maxUnconfirmed bounds the sandboxes that are named after a list.
const maxUnconfirmed = 10

// unconfirmedEnd is an element of `unconfirmed` in the JSON of ls.
type unconfirmedEnd struct {
	Ref    string    `json:"ref"`
	At     time.Time `json:"at"`
	Detail string    `json:"detail"`
}

// finishUnconfirmed says which sandboxes may still run after a request to end them.
func finishUnconfirmed(list *output.List[SandboxRow], r *ops.ListResult, now time.Time) {
	if r.UnconfirmedErr != nil {
		list.Set("unconfirmed", nil)
		list.Remark(ops.UnreadRequests(r.UnconfirmedErr))
		return
	}
	if len(r.Unconfirmed) == 0 {
		return
	}
	rows := []unconfirmedEnd{}
	for i, u := range r.Unconfirmed {
		rows = append(rows, unconfirmedEnd{u.Ref.String(), u.Request.At, u.Request.Detail})
		if i < maxUnconfirmed {
			list.Remark(u.Ref.String() + ": " + u.Message(now) + "; " + u.Hint())
		}
	}
	list.Set("unconfirmed", rows)
	if more := len(rows) - maxUnconfirmed; more > 0 {
		list.Remark(fmt.Sprintf("the ends of %d more are not confirmed; `sbx doctor` lists them", more))
	}
}
