package local

import (
	"maps"
	"strconv"
	"time"

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
		r.Close(c.abandoned(r.ID))
		r.State = r.EndState()
		s.State = r.State
	}
	s.LastActivityAt, s.ActivityBasis = r.StartedAt, sandbox.BasisOutput
	if at, ok := runlog.LastActivity(c.store.Dir(r.ID)); ok {
		s.LastActivityAt = at.UTC()
	}
	s = s.WithActivity(c.store.LastExec(r.ID), sandbox.BasisOutput)
	if s.State.Ended() {
		s.Activity = sandbox.False
	}
	if s.State.Ended() && !alive || r.ProgramEnded() {
		s.Exit = exitOf(r)
	}
	if alive {
		c.correctClock(&s, r)
	}
	return doubted(s, r, alive)
}

// doubted takes back the end that a record claims while its supervisor lives, or that
// nothing proves.
func doubted(s sandbox.Sandbox, r record.Record, alive bool) sandbox.Sandbox {
	switch {
	case !s.State.Ended():
	case alive: // for a moment after the last record, and for as long as a record lies
		s.RawState, s.State, s.Activity = string(s.State)+", and its supervisor lives", sandbox.StateTerminating, sandbox.Unknown
	case r.MayRun():
		s.RawState, s.State, s.Activity = string(s.State)+", and processes of it may be left", sandbox.StateUnknown, sandbox.Unknown
	}
	return s
}

// clockStep is the grain in which a jump of the wall clock is corrected: below it are
// the time from record to start and the grain of the kernel's clock.
const clockStep = 2 * time.Second

// correctClock counts the age of a living sandbox by the clock that nobody sets: a
// wall clock that was moved since makes it neither older nor silent.
func (c *Client) correctClock(s *sandbox.Sandbox, r record.Record) {
	age, known := c.age(r.Supervisor)
	if !known || r.CreatedAt.IsZero() {
		return
	}
	now := c.now()
	jump := (now.Sub(r.CreatedAt) - age).Round(clockStep)
	if jump == 0 {
		return
	}
	for _, at := range []*time.Time{&s.CreatedAt, &s.StartedAt} {
		if !at.IsZero() {
			*at = at.Add(jump)
		}
	}
	// What was written before the jump moves with it, what was written after does not,
	// and a file's time does not tell which: the younger reading counts.
	if moved := s.LastActivityAt.Add(jump); moved.After(s.LastActivityAt) {
		s.LastActivityAt = moved
	}
	if s.LastActivityAt.After(now) {
		s.LastActivityAt = now
	}
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
