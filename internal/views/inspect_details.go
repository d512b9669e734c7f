package views

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// addDetails is what -v adds to the page: every figure with its source, every check with its
// evidence.
func (i Inspection) addDetails(s *output.Sheet) {
	i.pageRecord(s)
	i.pageLimits(s)
	i.pageUsage(s)
	i.pageHealth(s)
	i.pageTimeline(s)
	i.pageExit(s)
	i.pageSuspicions(s)
}

func (i Inspection) pageRecord(s *output.Sheet) {
	s.Section("Record")
	addKnown(s, "raw state", i.RawState)
	s.Field("stuck", ops.WithDetail(string(i.Verdict.Stuck), i.Verdict.Say()))
	addKnown(s, "provider", ops.WithDetail(i.Provider, i.ProviderType))
	s.Field("age", i.ageText())
	addMoment(s, "created", i.CreatedAt)
	addMoment(s, "started", i.StartedAt)
	addMoment(s, "last activity", i.LastActivityAt)
	if !i.State.Ended() {
		addMoment(s, "expires", i.ExpiresAt)
	}
	addMoment(s, "ended", i.EndedAt)
}

func (i Inspection) ageText() string {
	age, source := i.Age(i.Now)
	if source == sandbox.AgeUnknown {
		return "unknown"
	}
	return ops.WithDetail(sandbox.FormatDuration(age), "since "+string(source))
}

func (i Inspection) pageLimits(s *output.Sheet) {
	l := i.Limits
	s.Section("Limits")
	addAmount(s, "memory", MebibytesText(l.MemoryBytes), "MiB")
	if l.CPU != nil {
		s.Field("cpu", Decimal(*l.CPU, 2)+" cores")
	}
	addCount(s, "processes", l.PIDs)
	addAmount(s, "disk", MebibytesText(l.DiskBytes), "MiB")
	addKnown(s, "isolation", l.Isolation)
	s.Field("enforcement", EnforcementText(l.Enforcement))
}

// EnforcementText says what holds the limits of a sandbox.
func EnforcementText(e sandbox.Enforcement) string {
	switch {
	case e == "":
		return "not reported by the provider"
	case e == sandbox.EnforcementNone:
		return ops.WithDetail(string(e), "the memory limit is not enforced")
	case e.Hard():
		return ops.WithDetail(string(e), "hard: the kernel enforces the memory limit")
	}
	return ops.WithDetail(string(e), "soft: memory may pass the limit for a moment")
}

func (i Inspection) pageUsage(s *output.Sheet) {
	s.Section("Usage")
	if i.Used == nil {
		s.Text(UnknownReason(i.Seen.Usage.Err))
		return
	}
	u := *i.Used
	if u.Trend.CPUPercent != nil {
		s.FieldTone("cpu", Decimal(*u.Trend.CPUPercent, 1)+"% of one core", u.CPUTone())
	}
	if u.Last.CPUSeconds != nil {
		s.Field("cpu time", time.Duration(*u.Last.CPUSeconds*float64(time.Second)))
	}
	if u.Trend.MemoryBytes != nil {
		s.FieldTone("memory", u.MemoryText()+" MiB", u.MemoryTone())
	}
	addAmount(s, "memory peak", MebibytesText(u.Last.MemoryPeakBytes), "MiB")
	switch {
	case u.Trend.MemorySlope != nil:
		s.Field("memory trend", u.SlopeText()+" MiB/min")
	case u.Trend.TooShort && u.Trend.Samples > 1:
		s.Field("memory trend", "too short to tell")
	}
	addCount(s, "operations", u.Last.Operations)
	if u.Last.Duration != nil {
		s.Field("has run for", *u.Last.Duration)
	}
	addCount(s, "processes", u.Last.PIDs)
	if tasks := u.Last.Tasks; tasks != nil && i.Limits.PIDs != nil {
		s.Field("processes and threads", fmt.Sprintf("%d of %d", *tasks, *i.Limits.PIDs))
	}
	if refused := u.Last.TasksRefused; refused != nil && *refused > 0 {
		s.FieldTone("refused by the limit", fmt.Sprintf("%d more processes or threads", *refused), output.Warn)
	}
	addCount(s, "oom kills", u.Last.OOMKills)
	addKnown(s, "waits on", u.Last.Waiting)
	if !i.State.Ended() {
		s.FieldTone("pattern", u.Verdict.Pattern, u.PatternTone())
	}
	s.Field("source", u.Trend.Source)
	if i.Seen.Usage.Err != nil {
		s.Field("incomplete", UnknownReason(i.Seen.Usage.Err))
	}
}

func (i Inspection) pageHealth(s *output.Sheet) {
	s.Section("Health")
	if i.Seen.Health.Err != nil {
		s.Text(UnknownReason(i.Seen.Health.Err))
		return
	}
	s.FieldTone("answers", i.Seen.Health.Got.Verdict, i.HealthTone())
	if c := i.conditionOf(); c != providers.ConditionUnknown {
		s.Field("condition", c)
	}
	for _, e := range i.Seen.Health.Got.Evidence {
		s.Field(e.What, ops.WithDetail(e.Value, e.Source))
	}
}

func (i Inspection) pageTimeline(s *output.Sheet) {
	s.Section("Timeline")
	switch {
	case i.Seen.Events.Err != nil:
		s.Text(UnknownReason(i.Seen.Events.Err))
	case len(i.Seen.Events.Got) == 0:
		s.Text("no events")
	}
	rows := make([][]any, len(i.Seen.Events.Got))
	for n, e := range i.Seen.Events.Got {
		rows[n] = []any{e.At, e.Event, e.Detail}
	}
	s.Table([]string{"at", "event", "detail"}, rows)
}

func (i Inspection) pageExit(s *output.Sheet) {
	e := i.Exit
	if e == nil {
		return
	}
	s.Section("Exit")
	if e.Code != nil {
		s.Field("code", e.Code)
	} else {
		s.Field("code", "nobody saw it")
	}
	addKnown(s, "raw", e.Raw)
	addKnown(s, "signal", e.Signal)
	s.Field("class", e.Class)
	switch e.Cause {
	case sandbox.CauseNone:
	case sandbox.CauseUnknown:
		s.FieldTone("cause", e.Cause, output.Warn)
	default:
		s.FieldTone("cause", ops.WithDetail(string(e.Cause), string(e.Confidence)), output.Bad)
	}
	for _, item := range e.Evidence {
		s.Field("evidence", evidenceText(item))
	}
}

// pageSuspicions says what is wrong and why: the runbook's flags that hold,
// those that could not be answered, and the causes by rank.
func (i Inspection) pageSuspicions(s *output.Sheet) {
	s.Section("Suspicious")
	var unknown []string
	calm := true
	for _, f := range i.Flags {
		switch f.Verdict {
		case sandbox.True:
			s.FieldTone(string(f.Severity), ClaimWithEvidence(f.Say, f.Evidence), SeverityTone(f.Severity))
			calm = false
		case sandbox.Unknown:
			unknown = append(unknown, f.Say)
		case sandbox.False:
		}
	}
	for _, c := range i.Verdict.Findings {
		s.FieldTone(string(c.Confidence), ClaimWithEvidence(string(c.Cause)+", "+c.Title, c.Evidence), ConfidenceTone(c.Confidence))
		calm = false
	}
	if v := i.Verdict; v.Confidence != sandbox.ConfidenceUnknown && !slices.ContainsFunc(v.Findings, func(f triage.Finding) bool { return f.Cause == v.Cause }) {
		s.FieldTone(string(v.Confidence), ClaimWithEvidence(string(v.Cause), v.Evidence), ConfidenceTone(v.Confidence))
		calm = false
	}
	if calm {
		s.Text("no problem found")
	}
	if len(unknown) > 0 {
		s.Text("not known: " + strings.Join(unknown, "; "))
	}
}

// ClaimWithEvidence joins a claim and what was seen of it.
func ClaimWithEvidence(claim string, evidence []sandbox.Evidence) string {
	texts := make([]string, 0, len(evidence))
	for _, e := range evidence {
		texts = append(texts, evidenceText(e))
	}
	if len(texts) == 0 {
		return claim
	}
	return claim + ": " + strings.Join(texts, ", ")
}

// SeverityTone is the tone of a severity.
func SeverityTone(s triage.Severity) output.Tone {
	switch s {
	case triage.Critical:
		return output.Bad
	case triage.Warning:
		return output.Warn
	case triage.Info:
	}
	return output.Plain
}

// ConfidenceTone is the tone of a confidence.
func ConfidenceTone(c sandbox.Confidence) output.Tone {
	switch c {
	case sandbox.Certain, sandbox.Probable:
		return output.Bad
	case sandbox.Hint:
		return output.Warn
	case sandbox.ConfidenceUnknown:
	}
	return output.Plain
}
