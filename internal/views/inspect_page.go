package views

import (
	"time"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// pageLines is how much of the output a page shows.
const pageLines = 10

// Page is what an operator reads: what it is, how it fares, and at the end,
// where the eye rests, what is wrong and what to type.
func (i Inspection) addPage(s *output.Sheet) {
	i.pageRecord(s)
	i.pageLimits(s)
	i.pageUsage(s)
	i.pageHealth(s)
	i.pageTimeline(s)
	i.pageOutput(s)
	i.pageExit(s)
	i.pageSuspicions(s)
	i.pageNext(s)
}

func (i Inspection) pageRecord(s *output.Sheet) {
	s.Section(i.Ref().String()).Field("state", i.State)
	if i.RawState != string(i.State) {
		addKnown(s, "raw state", i.RawState)
	}
	s.FieldTone("stuck", ops.WithDetail(string(i.Verdict.Stuck), i.Verdict.Say()), StuckTone(i.Verdict.Stuck))
	addKnown(s, "verdict", i.Verdict.Reason)
	addKnown(s, "name", i.Name)
	addKnown(s, "provider", ops.WithDetail(i.Provider, i.ProviderType))
	s.Field("age", i.ageText())
	addMoment(s, "created", i.CreatedAt)
	addMoment(s, "started", i.StartedAt)
	addMoment(s, "last activity", i.LastActivityAt)
	if !i.State.Ended() {
		addMoment(s, "expires", i.ExpiresAt)
	}
	addMoment(s, "ended", i.EndedAt)
	if i.Ended != nil {
		s.Field("ended by", i.Ended.Sentence(i.Now))
	}
	addKnown(s, "template", i.Template)
	addKnown(s, "agent type", i.AgentType)
	s.Field("task", i.TaskID)
	addKnown(s, "owner", i.Owner)
	if len(i.Labels) > 0 {
		s.Field("labels", i.Labels)
	}
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
		return "not told by the provider"
	case e == sandbox.EnforcementNone:
		return ops.WithDetail(string(e), "nothing holds the memory limit")
	case e.Hard():
		return ops.WithDetail(string(e), "hard: the kernel holds the memory limit")
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

func (i Inspection) pageOutput(s *output.Sheet) {
	last := i.Seen.Logs.Got[max(0, len(i.Seen.Logs.Got)-pageLines):]
	s.Section("Last output")
	switch {
	case i.Seen.Logs.Err != nil:
		s.Text(UnknownReason(i.Seen.Logs.Err))
	case len(last) == 0:
		s.Text("it has written nothing")
	}
	m := triage.NewMatcher()
	rows := make([][]any, len(last))
	for n, l := range last {
		pattern, _ := m.Match(l.Text)
		rows[n] = []any{ClockTime(l.At, i.Now), l.Stream, l.Text, pattern.ID}
	}
	s.Table([]string{"at", "stream", "line", "pattern"}, rows)
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
