package local

import (
	"maps"
	"strconv"

	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/runlog"
	"sbx/internal/sandbox"
)

// view turns a record into what the rest of sbx sees. alive says whether its
// supervisor lives; it is asked only for what has not ended.
func (c *Client) view(r record.Record, alive bool) sandbox.Sandbox {
	s := sandbox.Sandbox{
		Provider: c.name, ProviderType: TypeName, ID: r.ID, Name: r.Name,
		State: r.State, RawState: string(r.State),
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, ExpiresAt: r.ExpiresAt, EndedAt: r.EndedAt,
		Activity: sandbox.Unknown, AgentType: r.AgentType, TaskID: r.TaskID, Labels: maps.Clone(r.Labels),
		Limits: limitsOf(r.Limits),
	}
	if _, known := sandbox.ParseState(string(r.State)); !known {
		s.State = sandbox.StateUnknown
	}
	if !s.State.Ended() && !alive {
		r.Close(record.Exit{SupervisorLost: true})
		r.State = r.EndState()
		s.State = r.State
	}
	s.LastActivityAt, s.ActivityBasis = r.StartedAt, sandbox.BasisOutput
	if at, ok := runlog.LastActivity(c.store.Dir(r.ID)); ok {
		s.LastActivityAt = at.UTC()
	}
	if s.State.Ended() {
		s.Activity = sandbox.False
	}
	if s.State.Ended() || r.ProgramEnded() {
		s.Exit = exitOf(r)
	}
	return s
}

func limitsOf(l record.Limits) sandbox.Limits {
	out := sandbox.Limits{Enforcement: l.Enforcement, Isolation: l.Isolation}
	if l.MemoryBytes > 0 {
		out.MemoryBytes = &l.MemoryBytes
	}
	if l.CPU > 0 {
		out.CPU = &l.CPU
	}
	if l.PIDs > 0 {
		out.PIDs = &l.PIDs
	}
	return out
}

// rawExit spells an exit as the kernel reported it.
func rawExit(e *record.Exit) string {
	switch {
	case e == nil || (e.Code == nil && e.Signal == 0):
		return ""
	case e.Signal != 0:
		return "signal: " + strconv.Itoa(e.Signal)
	}
	return strconv.Itoa(*e.Code)
}
