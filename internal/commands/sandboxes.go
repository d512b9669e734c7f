package commands

import (
	"time"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// sandboxRow is one line of ls: a sandbox and the judgement over it.
type sandboxRow struct {
	sandbox.Sandbox
	Verdict triage.Verdict

	now time.Time
}

// sandboxColumns are S of CLI.md, in its order.
func sandboxColumns() []output.Column[sandboxRow] {
	type row = sandboxRow
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
		{Name: "age_source", Level: output.Extra, Value: func(r row) any { _, s := r.Age(r.now); return s }},
		{Name: "last_activity_at", Level: output.Extra, Value: func(r row) any { return output.Time(r.LastActivityAt) }},
		{Name: "idle_seconds", Head: "IDLE", Spare: true, Value: func(r row) any { return r.idle() }},
		{Name: "activity", Level: output.Wide, Value: func(r row) any { return r.Verdict.Activity }},
		{Name: "expires_at", Head: "EXPIRES", Level: output.Wide, Value: func(r row) any { return output.Time(r.ExpiresAt) }},
		{Name: "template", Level: output.Wide, Value: func(r row) any { return r.Template }},
		{Name: "agent_type", Head: "AGENT", Level: output.Wide, Value: func(r row) any { return r.AgentType }},
		{Name: "task_id", Head: "TASK", Value: func(r row) any { return r.TaskID }},
		{Name: "owner", Level: output.Wide, Value: func(r row) any { return r.Owner }},
		{Name: "labels", Level: output.Wide, Value: func(r row) any { return labels(r.Labels) }},
		{Name: "cpu", Level: output.Wide, Value: func(r row) any { return r.Limits.CPU }},
		{Name: "memory_mb", Head: "MEM LIMIT", Level: output.Wide, Value: func(r row) any { return output.MiB(r.Limits.MemoryBytes) }},
		{Name: "disk_mb", Level: output.Extra, Value: func(r row) any { return output.MiB(r.Limits.DiskBytes) }},
		{Name: "exit_code", Head: "EXIT", Value: func(r row) any { return r.exitCode() }},
		{Name: "stuck", Value: func(r row) any { return r.Verdict.Stuck }},
		{Name: "stuck_reason", Head: "WHY", Level: output.Wide, Value: func(r row) any { return r.Verdict.Say() }},
	}, verdictColumns(output.Wide, func(r row) triage.Verdict { return r.Verdict })...)
}

func (r sandboxRow) age() any {
	age, source := r.Age(r.now)
	if source == sandbox.AgeUnknown {
		return nil
	}
	return output.Seconds(age)
}

func (r sandboxRow) idle() any {
	idle, known := r.Idle(r.now)
	if !known || r.State.Ended() {
		return nil
	}
	return output.Seconds(idle)
}

func (r sandboxRow) exitCode() *int {
	if r.Exit == nil {
		return nil
	}
	return r.Exit.Code
}

func labels(l map[string]string) map[string]string {
	if l == nil {
		return map[string]string{}
	}
	return l
}
