// Package alert decides when a condition on the figures of a provider has held for long enough to
// notify people, and when it is over.
//
// A Rule is a condition, how long it must hold, and how severe it is. Its State is a document in
// the store, changed by compare-and-set, so that several processes and hosts notify once. Time in
// which nobody evaluated the rule counts for nothing: it neither fires nor forgets. The package
// sends nothing itself.
package alert

import (
	"fmt"
	"time"

	"sbx/internal/cond"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Severity is how urgent an alert is; routes go by it.
type Severity string

// The closed list.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
)

// Level is who should act on it first, as the runbook escalates (R144-R146).
type Level string

// The closed list.
const (
	LevelAgents         Level = "agents"         // the team whose agents hang
	LevelInfrastructure Level = "infrastructure" // quotas, cleanup, records
	LevelVendor         Level = "vendor"         // the provider itself
)

// Says names who that is.
func (l Level) Says() string {
	switch l {
	case LevelAgents:
		return "the team of the agents"
	case LevelVendor:
		return "the provider's support"
	case LevelInfrastructure:
	}
	return "the infrastructure team"
}

// Subject is what a condition is about: the figures of one provider.
type Subject struct {
	Provider string
	Figures  triage.FleetSignals
	Limits   triage.Thresholds
	Stuck    *int64 // nil = not known, here and below
	Unjudged *int64
	Orphans  *int64 // sandboxes that no record knows
	Corrupt  *int64 // records and sandboxes that contradict each other
}

// Rule is one alert.
type Rule struct {
	ID       string // "sandbox_leak_detected"
	Row      string // of the requirement
	Severity Severity
	Level    Level
	Title    string
	When     string // the condition, see Schema
	// For is how long the condition must hold; it may depend on the limits of the provider.
	For  func(triage.Thresholds) time.Duration
	Next string // the command to type, without the program's name
}

// Rules are the alerts that sbx evaluates.
func Rules() []Rule {
	return []Rule{
		{ID: "sandbox_timeout_high", Row: "R12", Severity: Warning, Level: LevelAgents, Title: "many sandboxes hit a time limit", When: "stats.timeout_rate > stats.thresholds.timeout_rate_high", Next: "report"},
		{ID: "sandbox_leak_detected", Row: "R10", Severity: Critical, Level: LevelAgents, Title: "more sandboxes run than should", When: "stats.active > stats.thresholds.active_max", For: sustained, Next: "ls --stuck"},
		{ID: "sandbox_stuck", Row: "R132", Severity: Warning, Level: LevelAgents, Title: "sandboxes are stuck", When: "stats.stuck > 0", Next: "cleanup --stuck"},
		{ID: "active_escalated", Row: "R139", Severity: Critical, Level: LevelInfrastructure, Title: "far more sandboxes run than should", When: "stats.active > stats.thresholds.escalate_active", For: escalated, Next: "cleanup --stuck"},
		{ID: "cleanup_failing", Row: "R140", Severity: Critical, Level: LevelInfrastructure, Title: "cleanup fails again and again", When: "cleanup.failures >= 3", Next: "cleanup runs"},
		{ID: "create_failing", Row: "R141", Severity: Critical, Level: LevelInfrastructure, Title: "sandboxes cannot be created", When: "create_failures >= 3", Next: "doctor"},
		{ID: "state_corruption", Row: "R142", Severity: Critical, Level: LevelInfrastructure, Title: "records and sandboxes contradict each other", When: "records.differ >= 2", Next: "reconcile"},
		{ID: "quota_exceeded", Row: "R143", Severity: Critical, Level: LevelVendor, Title: "a quota is used up", When: "quota.used >= 100%", Next: "doctor"},
		{ID: "quota_near", Row: "R113", Severity: Warning, Level: LevelInfrastructure, Title: "a quota is nearly used up", When: "quota.used >= stats.thresholds.quota_near", Next: "cleanup --stuck --if-usage-above 80%"},
		{ID: "stop_failures_high", Row: "S1-52", Severity: Warning, Level: LevelInfrastructure, Title: "many stops are not seen to end", When: "tasks.stop_failure_rate > 10%", Next: "report"},
		{ID: "inactivity_high", Row: "S1-53", Severity: Warning, Level: LevelAgents, Title: "many attempts end by inactivity", When: "tasks.inactivity_rate > 20%", Next: "report"},
		{ID: "orphans_found", Row: "S1-54", Severity: Warning, Level: LevelInfrastructure, Title: "sandboxes run that no record knows", When: "records.orphans > 0", Next: "reconcile"},
	}
}

func sustained(t triage.Thresholds) time.Duration { return t.Sustained }

func escalated(t triage.Thresholds) time.Duration { return t.EscalateFor }

// Duration is how long the condition of a rule must hold.
func (r Rule) Duration(t triage.Thresholds) time.Duration {
	if r.For == nil {
		return 0
	}
	return r.For(t)
}

// Schema is what the conditions of alerts may use: the keys of `stats`, and figures beside them.
func Schema() cond.Schema[*Subject] {
	count := func(name, meaning string, of func(*Subject) *int64) cond.Name[*Subject] {
		return cond.Name[*Subject]{Name: name, Kind: cond.KindNumber, Unit: cond.UnitCount, Meaning: meaning, Value: func(s *Subject) cond.Value {
			n := of(s)
			if n == nil {
				return cond.Absent()
			}
			return cond.Number(float64(*n))
		}}
	}
	share := func(name, meaning string, of func(*Subject) *float64) cond.Name[*Subject] {
		return cond.Name[*Subject]{Name: name, Kind: cond.KindNumber, Unit: cond.UnitRatio, Meaning: meaning, Value: func(s *Subject) cond.Value { return cond.NumberOf(of(s)) }}
	}
	limit := func(name, meaning string, of func(triage.Thresholds) int) cond.Name[*Subject] {
		return count("stats.thresholds."+name, meaning, func(s *Subject) *int64 { return new(int64(of(s.Limits))) })
	}
	limitShare := func(name, meaning string, of func(triage.Thresholds) float64) cond.Name[*Subject] {
		return share("stats.thresholds."+name, meaning, func(s *Subject) *float64 { return new(of(s.Limits)) })
	}
	return cond.Schema[*Subject]{Names: []cond.Name[*Subject]{
		count("stats.active", "running sandboxes", func(s *Subject) *int64 { return s.Figures.Active }),
		count("stats.provisioning", "sandboxes that are being created", func(s *Subject) *int64 { return s.Figures.Provisioning }),
		count("stats.stuck", "stuck sandboxes", func(s *Subject) *int64 { return s.Stuck }),
		count("stats.unjudged", "sandboxes that could not be judged", func(s *Subject) *int64 { return s.Unjudged }),
		share("stats.timeout_rate", "share of ended sandboxes that a time limit ended", func(s *Subject) *float64 { return s.Figures.TimeoutRate() }),
		limit("active_max", "the limit of running sandboxes", func(t triage.Thresholds) int { return t.ActiveMax }),
		limit("escalate_active", "the limit of running sandboxes for escalation", func(t triage.Thresholds) int { return t.EscalateActive }),
		limitShare("timeout_rate_high", "the limit of the timeout rate", func(t triage.Thresholds) float64 { return t.TimeoutRateHigh }),
		limitShare("quota_near", "the share from which a quota is nearly used up", func(t triage.Thresholds) float64 { return t.QuotaNear }),
		count("cleanup.failures", "failures of cleanup since it last succeeded", func(s *Subject) *int64 { return s.Figures.CleanupFailures }),
		count("create_failures", "creates that failed of late", func(s *Subject) *int64 { return s.Figures.CreateFailures }),
		share("quota.used", "the highest use of a quota", func(s *Subject) *float64 { return s.Figures.QuotaUsed }),
		count("records.orphans", "sandboxes that no record knows", func(s *Subject) *int64 { return s.Orphans }),
		count("records.differ", "records and sandboxes that contradict each other", func(s *Subject) *int64 { return s.Corrupt }),
		share("tasks.stop_failure_rate", "share of the stops of the last day without a verified end, of 20 or more", func(s *Subject) *float64 { return s.Figures.StopFailureRate() }),
		share("tasks.inactivity_rate", "share of the attempts of the last day that inactivity ended, of 20 or more", func(s *Subject) *float64 { return s.Figures.InactivityRate() }),
	}, Hint: "docs/ALERTS.md lists the names"}
}

// Phase is where an alert stands.
type Phase string

// The closed list. Pending holds, but not for long enough yet.
const (
	Quiet   Phase = "quiet"
	Pending Phase = "pending"
	Firing  Phase = "firing"
)

// State is what is kept of one rule at one provider.
type State struct {
	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"` // when it began to hold, later by what nobody saw
	Last  time.Time `json:"last"`  // of the last evaluation with a known verdict
	// GapNanoseconds is the time without an evaluation since it began to hold.
	GapNanoseconds time.Duration `json:"gap_ns"`
	// Send is the notification that is due; empty = none. Until SendUntil one process is sending,
	// and no other sends, so that a recovery never overtakes the alert.
	Send      Event     `json:"send"`
	SendUntil time.Time `json:"send_until"`
	// Left are the services that have not got it, where others have; empty = none has.
	Left     []string `json:"left,omitempty"`
	Evidence []string `json:"evidence"` // of the last evaluation
}

// Event is a change that people are notified of.
type Event string

// The closed list.
const (
	EventNone      Event = ""
	EventFired     Event = "fired"
	EventRecovered Event = "recovered"
)

// Step is the next state of an alert after one evaluation at now, by the store's clock. holdFor is
// how long the condition must hold, and every how often it is expected to be evaluated: a pause of
// more than twice that is a gap, which counts for nothing. An unknown verdict changes nothing.
// EventFired and EventRecovered come once for each change, in State.Send. A clock that was set
// back neither forgets what has held nor blocks the alert until the old time comes again.
func Step(s State, verdict sandbox.Verdict, now time.Time, holdFor, every time.Duration) State {
	if back := s.Last.Sub(now); back > 0 {
		s.Last = now
		for _, at := range []*time.Time{&s.Since, &s.SendUntil} {
			if !at.IsZero() {
				*at = at.Add(-back)
			}
		}
	}
	if verdict != sandbox.True && verdict != sandbox.False {
		return s
	}
	if s.Phase == "" {
		s.Phase = Quiet
	}
	if pause := now.Sub(s.Last); s.Phase == Pending && pause > 2*every {
		s.Since, s.GapNanoseconds = s.Since.Add(pause), s.GapNanoseconds+pause
	}
	s.Last = now
	switch {
	case verdict == sandbox.False && s.Phase == Firing:
		s.Phase, s.Since, s.GapNanoseconds, s.Send, s.Left = Quiet, time.Time{}, 0, EventRecovered, nil
	case verdict == sandbox.False:
		s.Phase, s.Since, s.GapNanoseconds = Quiet, time.Time{}, 0
	case s.Phase == Quiet:
		s.Phase, s.Since, s.GapNanoseconds = Pending, now, 0
		fallthrough
	case s.Phase == Pending:
		if now.Sub(s.Since) >= holdFor {
			s.Phase, s.Send, s.Left = Firing, EventFired, nil
		}
	}
	return s
}

// Describe says where the alert stands: "pending for 8m of 30m, data gap 12m".
func (s State) Describe(now time.Time, holdFor time.Duration) string {
	var text string
	switch s.Phase {
	case Pending:
		text = fmt.Sprintf("pending for %s of %s", sandbox.FormatElapsed(now.Sub(s.Since)), sandbox.FormatDuration(holdFor))
	case Firing:
		text = "firing for " + sandbox.FormatElapsed(now.Sub(s.Since))
	default:
		return "quiet"
	}
	if s.GapNanoseconds > 0 {
		text += ", data gap " + sandbox.FormatElapsed(s.GapNanoseconds)
	}
	return text
}
