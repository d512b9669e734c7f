// Package check is the one table of what the figures of a provider are compared with: a figure,
// a bound, for how long, how severe that is, and what to type next.
//
// Flags of a diagnosis, alerts, the targets of verify, the marks of stats and the quotas of doctor are
// rows of the table, and conditions of runbooks use its names. What a row says is a condition
// (package cond), so that every one of them is judged in the same way: true, false, or unknown where
// a figure is not known.
package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx/internal/cond"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Level is who should act first, as the runbook escalates (R144-R146).
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

// Check is one row: it holds where the figure stands in this relation to the bound.
type Check struct {
	ID       string
	Figure   string // the name of a figure, as conditions use it
	Sign     string // ">", ">=", "<", "<=", "!="
	Bound    string // a number, a percentage, or the name of a threshold
	Severity triage.Severity
	Title    string
	// For is how long it must hold; nil = not at all. It may depend on the limits of the provider.
	For   func(triage.Thresholds) time.Duration
	Level Level  // of an alert: who acts first
	Next  string // of an alert: the command to type, without the program's name
}

// When is the condition; "" = it is no row.
func (c Check) When() string { return strings.TrimSpace(c.Figure + " " + c.Sign + " " + c.Bound) }

// Duration is how long it must hold.
func (c Check) Duration(t triage.Thresholds) time.Duration {
	if c.For == nil {
		return 0
	}
	return c.For(t)
}

// Judge is whether it holds now; unknown where the figure is not known. A default limit that the
// fleet has exceeded for a day or more decides nothing, see DefaultNote.
func (c Check) Judge(s *Subject) sandbox.Verdict {
	return c.discountDefault(s, compiled(c.When()).Eval(s))
}

// Explain is Judge with the comparison in words.
func (c Check) Explain(s *Subject) cond.Explanation {
	e := compiled(c.When()).Explain(s)
	if note := c.DefaultNote(s); note != "" {
		e.Verdict = c.discountDefault(s, e.Verdict)
		e.Leaves = []cond.Leaf{{Text: c.When(), Verdict: e.Verdict, Compared: note, Words: note}}
	}
	return e
}

// Names are those that the condition uses.
func (c Check) Names() []string { return compiled(c.When()).Names() }

// Value is the figure; nil = not known.
func (c Check) Value(s *Subject) *float64 { return nameOf(c.Figure).of(s) }

// Unit is the unit of the figure.
func (c Check) Unit() cond.Unit { return nameOf(c.Figure).unit }

// Limit is the bound as a number, by the limits of the subject.
func (c Check) Limit(s *Subject) float64 {
	if n := nameOf(c.Bound); n != nil {
		return *n.of(s)
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(c.Bound, "%"), 64)
	if err != nil {
		panic("check: " + c.ID + ": " + err.Error()) // the rows are tested
	}
	if strings.HasSuffix(c.Bound, "%") {
		n /= 100
	}
	return n
}

// compiled keeps the condition of each row.
func compiled(when string) *cond.Condition[*Subject] {
	c := conditions()[when]
	if c == nil {
		panic("check: no row has the condition " + when)
	}
	return c
}

var conditions = sync.OnceValue(func() map[string]*cond.Condition[*Subject] { //nolint:gochecknoglobals // compiled once, never changed
	all, schema := map[string]*cond.Condition[*Subject]{}, schemaOf(slices.Concat(names(), innerNames()))
	for _, c := range slices.Concat(Alerts(), flags(), Targets()) {
		compiled, err := cond.Compile(c.When(), schema)
		if err != nil {
			panic(fmt.Sprintf("check: %s: %v", c.ID, err)) // the rows are tested
		}
		all[c.When()] = compiled
	}
	return all
})

// Alerts are the rows of which people are notified.
func Alerts() []Check {
	return []Check{
		TimeoutHigh(),
		leak(),
		Stuck(),
		{
			ID: "active_escalated", Severity: triage.Critical, Level: LevelInfrastructure, Title: "far more sandboxes run than should", Figure: "stats.active",
			Sign: ">", Bound: boundEscalate, For: escalated, Next: "cleanup --stuck",
		},
		{
			ID: "cleanup_failing", Severity: triage.Critical, Level: LevelInfrastructure, Title: "cleanup fails again and again", Figure: "cleanup.failures",
			Sign: ">=", Bound: "3", Next: "cleanup runs",
		},
		{
			ID: "create_failing", Severity: triage.Critical, Level: LevelInfrastructure, Title: "sandboxes cannot be created", Figure: "create_failures",
			Sign: ">=", Bound: "3", Next: "doctor",
		},
		{
			ID: "state_corruption", Severity: triage.Critical, Level: LevelInfrastructure, Title: "records and sandboxes contradict each other",
			Figure: "records.differ", Sign: ">=", Bound: "2", Next: "reconcile",
		},
		{
			ID: "quota_exceeded", Severity: triage.Critical, Level: LevelVendor, Title: "a quota is used up", Figure: "quota.used", Sign: ">=", Bound: "100%",
			Next: "doctor",
		},
		QuotaNear(),
		{
			ID: "stop_failures_high", Severity: triage.Warning, Level: LevelInfrastructure, Title: "many stops are not seen to end",
			Figure: "tasks.stop_failure_rate", Sign: ">", Bound: "10%", Next: "report",
		},
		{
			ID: "inactivity_high", Severity: triage.Warning, Level: LevelAgents, Title: "many attempts end by inactivity", Figure: "tasks.inactivity_rate",
			Sign: ">", Bound: "20%", Next: "report",
		},
		{
			ID: "orphans_found", Severity: triage.Warning, Level: LevelInfrastructure, Title: "sandboxes run that no record knows", Figure: "records.orphans",
			Sign: ">", Bound: "0", Next: "reconcile",
		},
	}
}

// leak is ActiveOver for long enough that people are notified (R10).
func leak() Check {
	c := ActiveOver()
	c.ID, c.Level, c.For, c.Next = "sandbox_leak_detected", LevelAgents, sustained, "ls --stuck"
	return c
}

func sustained(t triage.Thresholds) time.Duration { return t.Sustained }

func escalated(t triage.Thresholds) time.Duration { return t.EscalateFor }

// ActiveOver holds while more run than may (strictly; R4), for however long.
func ActiveOver() Check {
	return Check{ID: "too_many_active", Severity: triage.Critical, Title: "more sandboxes run than should", Figure: "stats.active", Sign: ">", Bound: boundActive}
}

// TimeoutHigh holds where too many sandboxes hit a time limit (strictly; R3, R12).
func TimeoutHigh() Check {
	return Check{
		ID: "sandbox_timeout_high", Severity: triage.Warning, Level: LevelAgents, Title: "many sandboxes hit a time limit", Figure: "stats.timeout_rate",
		Sign: ">", Bound: "stats.thresholds.timeout_rate_high", Next: "report",
	}
}

// TimeoutGood is the target of the rate (strictly; R128). Between it and TimeoutHigh a rate is
// degraded: neither healthy nor an alert.
func TimeoutGood() Check {
	return Check{
		ID: "timeouts_low", Title: "share of timeouts at one provider", Figure: "stats.timeout_rate", Sign: "<",
		Bound: "stats.thresholds.timeout_rate_good",
	}
}

// Stuck holds where any sandbox is stuck.
func Stuck() Check {
	return Check{
		ID: "sandbox_stuck", Severity: triage.Warning, Level: LevelAgents, Title: "sandboxes are stuck", Figure: "stats.stuck", Sign: ">", Bound: "0",
		Next: "cleanup --stuck",
	}
}

// QuotaNear holds where a quota is nearly used up (R109, R113).
func QuotaNear() Check {
	return Check{
		ID: "quota_near", Severity: triage.Warning, Level: LevelInfrastructure, Title: "a quota is nearly used up", Figure: "quota.used", Sign: ">=",
		Bound: "stats.thresholds.quota_near", Next: "cleanup --stuck --if-usage-above 80%",
	}
}

// Targets are the rows that verify wants to hold (R125-R129). R127 is judged by the runs of cleanup:
// see cron.Judge.
func Targets() []Check {
	return []Check{
		{ID: "active_normal", Title: "running sandboxes at one provider", Figure: "stats.active", Sign: "<", Bound: boundNormal},
		{ID: "none_over_age", Title: "sandboxes over their age limit and not at work", Figure: "stats.over_age", Sign: "<=", Bound: "0"},
		{ID: "cleanup_recent", Title: "time since cleanup left nothing undone", Figure: "cleanup.since", Sign: "<=", Bound: "stats.thresholds.cleanup_limit"},
		TimeoutGood(),
		{ID: "quota_free", Title: "use of a quota", Figure: "quota.used", Sign: "<", Bound: "stats.thresholds.quota_near"},
	}
}

// Target is one of Targets by its id.
func Target(id string) Check {
	all := Targets()
	return all[slices.IndexFunc(all, func(c Check) bool { return c.ID == id })]
}
