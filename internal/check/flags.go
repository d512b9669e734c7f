package check

import (
	"fmt"
	"slices"
	"time"

	"sbx/internal/cond"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// flags are the rows that answer the runbook's questions about one provider.
func flags() []Check {
	return []Check{
		ActiveOver(),
		TimeoutHigh(),
		{ID: "cleanup_fails", Severity: triage.Warning, Title: "cleanup fails", Figure: "cleanup.failures", Sign: ">", Bound: "0"},
		{
			ID: "max_sandboxes_over", Severity: triage.Warning,
			Title: "more are active than max_sandboxes allows: not every create obeys it, or sandboxes leak", Figure: "stats.active", Sign: ">",
			Bound: "stats.max_sandboxes",
		},
		{ID: triage.CountsDifferID, Severity: triage.Warning, Title: triage.CountsDiffer, Figure: "stats.remaining", Sign: "!=", Bound: "stats.present"},
	}
}

// Flags answers the runbook's questions about one provider. What is not known is unknown.
func Flags(s *Subject, now time.Time) []triage.Flag {
	all := []triage.Flag{}
	for _, c := range flags() {
		f := triage.Flag{ID: c.ID, Severity: c.Severity, Say: c.statement(s.Limits), Verdict: c.Judge(s)}
		if f.Verdict != sandbox.Unknown {
			f.Evidence = c.evidence(s, now)
		}
		note := c.DefaultNote(s)
		if note != "" { // it is said, and is no problem
			f.Severity, f.Say, f.Verdict = triage.Info, note, sandbox.True
		}
		all = append(all, f)
		if c.ID == ActiveOver().ID {
			sustained := sustainedFlag(s, now)
			if note != "" {
				sustained.Severity = triage.Info
			}
			all = append(all, sustained)
		}
	}
	return all
}

// statement is what the flag says, with the limit.
func (c Check) statement(t triage.Thresholds) string {
	switch c.ID {
	case ActiveOver().ID:
		return fmt.Sprintf("more than %d active", t.ActiveMax)
	case TimeoutHigh().ID:
		return fmt.Sprintf("more than %s%% of the runs hit a time limit", triage.FormatDecimal(t.TimeoutRateHigh*100))
	}
	return c.Title
}

// evidence is the figure, and the bound where that is a figure, too.
func (c Check) evidence(s *Subject, now time.Time) []sandbox.Evidence {
	var all []sandbox.Evidence
	for _, word := range []string{c.Figure, c.Bound} {
		n := nameOf(word)
		if n == nil || n.what == "" {
			continue
		}
		value, unit, source := *n.of(s), "", n.source
		switch {
		case n.name == TimeoutHigh().Figure:
			value, unit = value*100, "% "+string(GradeTimeouts(s))
			if !s.Figures.CountsTimeouts() {
				source = "tasks"
			}
		case n.unit == cond.UnitRatio:
			value, unit = value*100, "%"
		}
		all = append(all, triage.NumberEvidence(n.what, value, unit, source, now))
	}
	return all
}

// sustainedFlag is R10: every sample since Sustained or longer ago is over the limit. One sample
// proves no duration, and a shorter history proves nothing.
func sustainedFlag(s *Subject, now time.Time) triage.Flag {
	leak := ActiveOver()
	flag := triage.Flag{
		ID: "too_many_active_sustained", Severity: triage.Critical, Verdict: sandbox.Unknown,
		Say: fmt.Sprintf("%s for %s or longer", leak.statement(s.Limits), sandbox.FormatElapsed(s.Limits.Sustained)),
	}
	history := s.Figures.Past(now)
	since := len(history)
	for since > 0 && leak.Judge(&Subject{Figures: triage.FleetSignals{Active: &history[since-1].Active}, Limits: s.Limits}) == sandbox.True {
		since--
	}
	switch {
	case len(history) == 0:
	case since == len(history):
		flag.Verdict = sandbox.False
	case since < len(history)-1 && now.Sub(history[since].At) >= s.Limits.Sustained:
		flag.Verdict = sandbox.True
		flag.Evidence = []sandbox.Evidence{triage.DurationEvidence("over the limit", now.Sub(history[since].At), "history", now)}
	case since > 0:
		flag.Verdict = sandbox.False // it was at or under the limit recently
	}
	return flag
}

// Grade is how a rate of timeouts is judged.
type Grade string

// The closed list. Between the two limits a rate is neither healthy nor an alert.
const (
	GradeUnknown  Grade = ""
	GradeHealthy  Grade = "healthy"
	GradeDegraded Grade = "degraded"
	GradeAlert    Grade = "alert"
)

// GradeTimeouts grades the rate of timeouts.
func GradeTimeouts(s *Subject) Grade {
	switch {
	case TimeoutHigh().Judge(s) == sandbox.True:
		return GradeAlert
	case TimeoutGood().Judge(s) == sandbox.True:
		return GradeHealthy
	case TimeoutGood().Judge(s) == sandbox.False:
		return GradeDegraded
	}
	return GradeUnknown
}

// Alert is the row of an alert by its id; false = there is none.
func Alert(id string) (Check, bool) {
	all := Alerts()
	i := slices.IndexFunc(all, func(c Check) bool { return c.ID == id })
	if i < 0 {
		return Check{}, false
	}
	return all[i], true
}
