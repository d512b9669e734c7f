package commands

import (
	"time"

	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// sandboxRow is one line of ls: a sandbox and the judgement over it.
type sandboxRow struct {
	sandbox.Sandbox
	Stuck  sandbox.Verdict
	Reason string

	now        time.Time
	inactivity time.Duration
}

// sandboxColumns are S of CLI.md, in its order.
func sandboxColumns() []output.Column[sandboxRow] {
	type row = sandboxRow
	return []output.Column[row]{
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
		{Name: "activity", Level: output.Wide, Value: func(r row) any { return r.activity() }},
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
		{Name: "stuck", Value: func(r row) any { return r.Stuck }},
		{Name: "stuck_reason", Head: "WHY", Level: output.Wide, Value: func(r row) any { return r.Reason }},
	}
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

// activity is the provider's own word, else whether the last sign of life is
// within the inactivity limit.
func (r sandboxRow) activity() sandbox.Verdict {
	if r.Activity == sandbox.True || r.Activity == sandbox.False {
		return r.Activity
	}
	if idle, known := r.Idle(r.now); known {
		return sandbox.VerdictOf(idle <= r.inactivity)
	}
	return sandbox.Unknown
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
