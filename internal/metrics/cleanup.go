package metrics

import (
	"maps"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// Build says which sbx wrote the figures.
type Build struct{ Version, Commit, Go string }

// Cleanup is the figures of one cleanup run. All are of this run, except LastSuccess, which is
// the journal's.
type Cleanup struct {
	Build Build
	// Layer distinguishes the files of several cron layers in one folder, whose samples would
	// collide otherwise; "" = no such label.
	Layer           string
	Profiles        []ProfileFigures
	ExitCode        int
	DurationSeconds float64
	Dry             bool // it only showed what it would do
	Refused         bool // a guard said no, and nothing was ended
}

// ProfileFigures are the figures of one profile.
type ProfileFigures struct {
	Profile string
	// LastSuccess is when a run last ended everything it meant to. It comes from
	// the journal, so that a dry or refused run cannot move it; zero = never.
	LastSuccess    time.Time
	LastRun        time.Time // zero = never
	Complete       bool      // the listing was
	Candidates     int       // what the rule selected
	KeptUnknownAge int
	Kept           map[string]int // what the rule left alone, by reason
	Unverified     int            // asked to end and not seen to
	Outcomes       map[string]int // by sandbox.Outcome; those that are missing are 0
	// OldestEligibleSeconds is the age of the oldest sandbox that was selected;
	// nil = there was none.
	OldestEligibleSeconds *float64
	Ages                  []time.Duration // of the whole fleet, those that are known
}

// Set names the figures. What is not known is absent, never 0; that nothing ever
// succeeded is known and is 0, so that "older than two runs" fires then as well.
func (c Cleanup) Set() Set {
	var s Set
	all := c.Labels()
	s.addBuild(c.Build, all)
	s.Gauge("sbx_cleanup_exit_code", "Exit code of the last run (sbx help exit-codes).", float64(c.ExitCode), all...)
	s.Gauge("sbx_cleanup_duration_seconds", "How long the last run took.", c.DurationSeconds, all...)
	s.Gauge("sbx_cleanup_dry_run", "1 = the last run was a dry run.", boolFigure(c.Dry), all...)
	s.Gauge("sbx_cleanup_refused", "1 = a safety limit refused the last run and nothing was terminated.", boolFigure(c.Refused), all...)
	for _, p := range c.Profiles {
		p.addTo(&s, append(all, Label{"provider", p.Profile}))
	}
	return s
}

// Labels are the labels of every figure.
func (c Cleanup) Labels() []Label {
	if c.Layer == "" {
		return nil
	}
	return []Label{{"layer", c.Layer}}
}

func (p ProfileFigures) addTo(s *Set, mine []Label) {
	s.Gauge(
		"sbx_cleanup_last_success_timestamp_seconds", "When cleanup last succeeded, 0 = never; dry and refused runs do not count.",
		unixSeconds(p.LastSuccess), mine...,
	)
	s.Gauge("sbx_cleanup_last_run_timestamp_seconds", "When cleanup last ran, whatever its result, 0 = never.", unixSeconds(p.LastRun), mine...)
	s.Gauge("sbx_cleanup_complete", "1 = the listing of the last run was complete.", boolFigure(p.Complete), mine...)
	s.Gauge("sbx_cleanup_candidates", "Sandboxes that the rule of the last run selected.", float64(p.Candidates), mine...)
	for _, name := range p.outcomeWords() {
		s.Gauge(
			"sbx_cleanup_outcomes", "Selected sandboxes of the last run by outcome.", float64(p.Outcomes[name]),
			append(slices.Clip(mine), Label{"outcome", name})...,
		)
	}
	s.Gauge("sbx_cleanup_kept_unknown_age", "Sandboxes that the last run kept because their age is unknown.", float64(p.KeptUnknownAge), mine...)
	for _, reason := range slices.Sorted(maps.Keys(p.Kept)) {
		s.Gauge(
			"sbx_cleanup_kept", "Sandboxes that the last run kept, by reason; not_owned would be terminated if they had an owner.", float64(p.Kept[reason]),
			append(slices.Clip(mine), Label{"reason", reason})...,
		)
	}
	s.Gauge("sbx_cleanup_unverified", "Sandboxes whose end the last run requested and could not verify.", float64(p.Unverified), mine...)
	if p.OldestEligibleSeconds != nil {
		s.Gauge("sbx_cleanup_oldest_eligible_age_seconds", "Age of the oldest sandbox that the last run selected; absent = none.", *p.OldestEligibleSeconds, mine...)
	}
	s.Histogram("sbx_cleanup_fleet_age_seconds", "Ages of all sandboxes of the provider at the last run.", ageBounds(), secondsOf(p.Ages), mine...)
}

// outcomeWords are all of the closed list, and behind them what else was counted.
func (p ProfileFigures) outcomeWords() []string {
	var names []string
	for _, o := range sandbox.Outcomes() {
		names = append(names, string(o))
	}
	for _, o := range slices.Sorted(maps.Keys(p.Outcomes)) {
		if !slices.Contains(names, o) {
			names = append(names, o)
		}
	}
	return names
}

// ageBounds are the ages, in seconds, that the runbook asks about: one minute,
// the watch age of 5, the stuck age of 10, and on to a day.
func ageBounds() []float64 {
	return []float64{60, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400}
}

func secondsOf(list []time.Duration) []float64 {
	out := make([]float64, len(list))
	for i, d := range list {
		out[i] = max(0, d.Seconds())
	}
	return out
}

func unixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

func boolFigure(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
