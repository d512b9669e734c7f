package check

import (
	"slices"

	"sbx/internal/cond"
	"sbx/internal/cron"
	"sbx/internal/triage"
)

// Subject is what checks are about: the figures of one provider. Nil = not known.
type Subject struct {
	Provider string
	Figures  triage.FleetSignals
	Limits   triage.Thresholds
	Stuck    *int64
	Unjudged *int64
	OverAge  *int64 // over their age limit, and not proved to be at work
	Orphans  *int64 // sandboxes that no record knows
	Corrupt  *int64 // records and sandboxes that contradict each other
	// CleanupSince is how long ago cleanup last left nothing undone, in seconds. Whether that is too long
	// is judged by cron.Judge.
	CleanupSince *float64
}

// name is a figure or a threshold, as conditions use it.
type name struct {
	name    string
	unit    cond.Unit
	meaning string
	of      func(*Subject) *float64
	what    string // of a figure in the evidence of a flag
	source  string
}

func count(of func(*Subject) *int64) func(*Subject) *float64 {
	return func(s *Subject) *float64 {
		if n := of(s); n != nil {
			return new(float64(*n))
		}
		return nil
	}
}

func limit(of func(triage.Thresholds) float64) func(*Subject) *float64 {
	return func(s *Subject) *float64 { return new(of(s.Limits)) }
}

// names are the keys of `stats`, and figures beside them.
func names() []name {
	return []name{
		{"stats.active", cond.UnitCount, "running sandboxes", count(func(s *Subject) *int64 { return s.Figures.Active }), "active", "stats"},
		{
			"stats.provisioning", cond.UnitCount, "sandboxes that are being created", count(func(s *Subject) *int64 { return s.Figures.Provisioning }),
			"in provisioning", "stats",
		},
		{"stats.stuck", cond.UnitCount, "stuck sandboxes", count(func(s *Subject) *int64 { return s.Stuck }), "stuck", "stats"},
		{"stats.unjudged", cond.UnitCount, "sandboxes that could not be judged", count(func(s *Subject) *int64 { return s.Unjudged }), "unjudged", "stats"},
		{
			"stats.timeout_rate", cond.UnitRatio, "share of ended sandboxes that a time limit ended",
			func(s *Subject) *float64 { return s.Figures.TimeoutRate() }, "timeout rate", "stats",
		},
		{boundActive, cond.UnitCount, "the limit of running sandboxes", limit(func(t triage.Thresholds) float64 { return float64(t.ActiveMax) }), "", ""},
		{
			boundNormal, cond.UnitCount, "the count of running sandboxes that normal load stays below",
			limit(func(t triage.Thresholds) float64 { return float64(t.ActiveNormal) }), "", "",
		},
		{
			boundEscalate, cond.UnitCount, "the limit of running sandboxes for escalation",
			limit(func(t triage.Thresholds) float64 { return float64(t.EscalateActive) }), "", "",
		},
		{
			"stats.thresholds.timeout_rate_high", cond.UnitRatio, "the limit of the timeout rate",
			limit(func(t triage.Thresholds) float64 { return t.TimeoutRateHigh }), "", "",
		},
		{
			"stats.thresholds.timeout_rate_good", cond.UnitRatio, "the timeout rate that a healthy provider stays below",
			limit(func(t triage.Thresholds) float64 { return t.TimeoutRateGood }), "", "",
		},
		{
			"stats.thresholds.quota_near", cond.UnitRatio, "the share from which a quota is nearly used up",
			limit(func(t triage.Thresholds) float64 { return t.QuotaNear }), "", "",
		},
		{
			"stats.thresholds.cleanup_limit", cond.UnitSeconds, "two intervals of cleanup: more without a success is overdue",
			limit(func(t triage.Thresholds) float64 { return cron.Limit(t.CleanupEvery).Seconds() }), "", "",
		},
		{
			"cleanup.failures", cond.UnitCount, "failures of cleanup since it last succeeded",
			count(func(s *Subject) *int64 { return s.Figures.CleanupFailures }), "cleanup failures", "cleanup log",
		},
		{
			"create_failures", cond.UnitCount, "creates that failed of late", count(func(s *Subject) *int64 { return s.Figures.CreateFailures }),
			"failed creates", "tasks",
		},
		{"quota.used", cond.UnitRatio, "the highest use of a quota", func(s *Subject) *float64 { return s.Figures.QuotaUsed }, "quota used", "quota"},
		{"records.orphans", cond.UnitCount, "sandboxes that no record knows", count(func(s *Subject) *int64 { return s.Orphans }), "orphans", "records"},
		{
			"records.differ", cond.UnitCount, "records and sandboxes that contradict each other", count(func(s *Subject) *int64 { return s.Corrupt }),
			"contradictions", "records",
		},
		{
			"tasks.stop_failure_rate", cond.UnitRatio, "share of the stops of the last day without a verified end, of 20 or more",
			func(s *Subject) *float64 { return s.Figures.StopFailureRate() }, "stops that failed", "tasks",
		},
		{
			"tasks.inactivity_rate", cond.UnitRatio, "share of the attempts of the last day that inactivity ended, of 20 or more",
			func(s *Subject) *float64 { return s.Figures.InactivityRate() }, "attempts that inactivity ended", "tasks",
		},
	}
}

// innerNames are figures of rows alone: no condition of a runbook has a collector for them.
func innerNames() []name {
	return []name{
		{
			"stats.over_age", cond.UnitCount, "sandboxes over their age limit that are not proved to be at work",
			count(func(s *Subject) *int64 { return s.OverAge }), "over their age limit", "look",
		},
		{
			"stats.remaining", cond.UnitCount, "created minus destroyed", count(func(s *Subject) *int64 { return s.Figures.Remaining() }),
			"created minus destroyed", "stats",
		},
		{
			"stats.present", cond.UnitCount, "running sandboxes, and those that are being created or ended",
			count(func(s *Subject) *int64 { return s.Figures.Present() }), "active, provisioning and terminating", "stats",
		},
		{
			"stats.max_sandboxes", cond.UnitCount, "the limit max_sandboxes of the configuration",
			count(func(s *Subject) *int64 { return s.Figures.MaxSandboxes }), "max_sandboxes", "config",
		},
		{
			"cleanup.since", cond.UnitSeconds, "time since cleanup left nothing undone", func(s *Subject) *float64 { return s.CleanupSince },
			"since cleanup left nothing undone", "journals",
		},
	}
}

// nameOf finds a name; nil = it is none.
func nameOf(wanted string) *name {
	all := slices.Concat(names(), innerNames())
	if i := slices.IndexFunc(all, func(n name) bool { return n.name == wanted }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Schema is what the conditions of runbooks may use.
func Schema() cond.Schema[*Subject] { return schemaOf(names()) }

func schemaOf(all []name) cond.Schema[*Subject] {
	s := cond.Schema[*Subject]{Hint: "docs/ALERTS.md lists the names"}
	for _, n := range all {
		s.Names = append(
			s.Names,
			cond.Name[*Subject]{
				Name: n.name, Kind: cond.KindNumber, Unit: n.unit, Title: n.what, Meaning: n.meaning,
				Value: func(s *Subject) cond.Value { return cond.NumberOf(n.of(s)) },
			},
		)
	}
	return s
}
