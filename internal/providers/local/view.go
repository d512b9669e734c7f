package local

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/runlog"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// toSandbox converts a record. alive says whether its supervisor is alive.
func (c *Client) toSandbox(r record.Record, alive bool) sandbox.Sandbox {
	s := sandbox.Sandbox{
		Provider: c.name, ProviderType: TypeName, ID: r.ID, Name: r.Name,
		State: r.State, RawState: string(r.State),
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, ExpiresAt: r.ExpiresAt, EndedAt: r.EndedAt,
		Activity: sandbox.Unknown, AgentType: r.AgentType, TaskID: r.TaskID, Labels: maps.Clone(r.Labels), Command: slices.Clone(r.Command),
		Limits: toLimits(r.Limits),
	}
	if _, known := sandbox.ParseState(string(r.State)); !known {
		s.State = sandbox.StateUnknown
	}
	if !s.State.Ended() && !alive {
		r.Close(c.abandonedExit(r.ID))
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
		s.Exit = new(classifyExit(nil, r, nil))
	}
	if s.State == sandbox.StateTerminating {
		for _, e := range r.Events {
			if e.Event == string(sandbox.StateTerminating) {
				s.EndingAt = e.At
			}
		}
	}
	if alive {
		c.correctClock(&s, r)
	}
	return withdrawUnproven(s, r, alive)
}

// withdrawUnproven withdraws the end that a record claims while its supervisor is alive, or
// that nothing proves.
func withdrawUnproven(s sandbox.Sandbox, r record.Record, alive bool) sandbox.Sandbox {
	switch {
	case !s.State.Ended():
	case alive: // for a moment after the last record, or because the record is wrong
		s.RawState, s.State, s.Activity = string(s.State)+", and its supervisor runs", sandbox.StateTerminating, sandbox.Unknown
	case r.MayRun():
		s.RawState, s.State, s.Activity = string(s.State)+", and some of its processes may remain", sandbox.StateUnknown, sandbox.Unknown
	}
	return s
}

// clockStep is the granularity of the correction of a clock jump: the time from record to
// start and the resolution of the kernel's clock are smaller.
const clockStep = 2 * time.Second

// correctClock computes the age of a living sandbox by the monotonic clock: a wall clock that
// was set since makes it neither older nor silent.
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
	// What was written before the jump moves with it, what was written after does not, and a
	// file's time does not show which: the later time counts.
	if moved := s.LastActivityAt.Add(jump); moved.After(s.LastActivityAt) {
		s.LastActivityAt = moved
	}
	if s.LastActivityAt.After(now) {
		s.LastActivityAt = now
	}
}

func toLimits(l record.Limits) sandbox.Limits {
	return sandbox.Limits{
		Enforcement: l.Enforcement, Isolation: l.Isolation,
		MemoryBytes: ifPositive(l.MemoryBytes), CPU: ifPositive(l.CPU), PIDs: ifPositive(l.PIDs),
	}
}

func ifPositive[T int64 | float64](v T) *T {
	if v > 0 {
		return &v
	}
	return nil
}

func rawExit(e *record.Exit) string {
	switch {
	case e == nil || (e.Code == nil && e.Signal == 0):
		return ""
	case e.Signal != 0:
		return "signal: " + strconv.Itoa(e.Signal)
	}
	return strconv.Itoa(*e.Code)
}

// lastLines is how many lines of output are searched for a reason of the exit.
const lastLines = 20

// exitWithLogs classifies an exit also by the last lines of the output, which is too expensive
// for a listing.
func (c *Client) exitWithLogs(ctx context.Context, r record.Record) *sandbox.Exit {
	var lines []string
	for line, err := range runlog.Read(ctx, c.store.Dir(r.ID), runlog.Query{Tail: lastLines}) {
		if err != nil {
			break
		}
		lines = append(lines, line.Text)
	}
	return new(classifyExit(triage.NewMatcher(), r, lines))
}

// classifyExit classifies a record's facts by the rules that all providers share.
func classifyExit(m *triage.Matcher, r record.Record, lines []string) sandbox.Exit {
	e := r.Exit
	if e == nil {
		e = &record.Exit{}
	}
	f := triage.ExitFacts{
		Raw: rawExit(e), Died: diedBySignal(e), NotStarted: e.StartError != "", At: r.EndedAt, Source: "wait status",
		TimedOut: e.TimedOut, Watchdog: e.WatchdogBytes > 0, SupervisorLost: e.SupervisorLost,
		OOMKills: e.OOMKills, CounterSource: counterSource(e.CounterSource), UsageSource: e.CounterSource, PeakBytes: e.PeakBytes, LastBytes: e.LastBytes, LastAt: e.LastSampleAt,
		TasksRefused: e.TasksRefused, TaskLimit: ifPositive(r.Limits.PIDs),
		KernelLog: e.KernelLog, NotLogged: e.NotLogged, LastKillAt: e.LastKillAt, OwnLimit: e.OwnLimit,
		Lines: lines, LimitBytes: ifPositive(r.Limits.MemoryBytes),
	}
	if e.At != nil {
		f.At = *e.At
	}
	if e.Stop != nil {
		f.StopBy = e.Stop.By
	}
	out := triage.ClassifyExit(m, f)
	if e.StartError != "" {
		out.Evidence = append(out.Evidence, sandbox.Evidence{What: "start", Value: e.StartError, Source: "supervisor", At: f.At})
	}
	out.Evidence = append(out.Evidence, treeEvidence(e.Emptied, e.Unproven, f.At)...)
	if r.End != nil {
		out.Evidence = append(out.Evidence, laterEndEvidence(r)...)
	}
	return out
}

// laterEndEvidence says how a lingering sandbox ended after its program. It does not explain
// the program's exit.
func laterEndEvidence(r record.Record) []sandbox.Evidence {
	end := r.End
	how := "its stub was lost"
	switch {
	case end.Stop != nil:
		how = "stopped by " + end.Stop.By
	case end.TimedOut:
		how = "it reached its time limit"
	case end.WatchdogBytes > 0:
		how = "the memory watchdog ended it"
	case end.SupervisorLost:
		how = "its supervisor or stub was lost"
	}
	facts := []sandbox.Evidence{{What: "the sandbox ended later", Value: how, Source: "sbx", At: r.EndedAt}}
	return append(facts, treeEvidence(end.Emptied, end.Unproven, r.EndedAt)...)
}

// treeEvidence is what is known of remaining processes of a sandbox.
func treeEvidence(emptied string, unproven bool, at time.Time) []sandbox.Evidence {
	switch {
	case unproven:
		return []sandbox.Evidence{{
			What: "tree", Value: "unknown: its supervisor and its stub were killed, and only processes with its mark could be searched for",
			Source: "process environments", At: at,
		}}
	case emptied != "":
		return []sandbox.Evidence{{What: "tree", Value: emptied, Source: "kernel", At: at}}
	}
	return nil
}

// counterSource names the kernel's file of the counters of an enforcement.
func counterSource(enforcement string) string {
	switch sandbox.Enforcement(enforcement) {
	case sandbox.EnforcementCgroup2, sandbox.EnforcementScope:
		return "kernel: memory.events (" + enforcement + ")"
	case sandbox.EnforcementCgroup1, sandbox.EnforcementHybrid:
		return "kernel: memory.oom_control (" + enforcement + ")"
	case sandbox.EnforcementWatch, sandbox.EnforcementNone:
	}
	return enforcement
}

func diedBySignal(e *record.Exit) sandbox.Verdict {
	switch {
	case e.Signal != 0:
		return sandbox.True
	case e.Code != nil:
		return sandbox.False
	}
	return sandbox.Unknown
}
