package commands

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

// page is what an operator reads: what it is, how it fares, and at the end,
// where the eye rests, what is wrong and what to type.
func (i inspection) page(s *output.Sheet) {
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

func (i inspection) pageRecord(s *output.Sheet) {
	s.Section(i.Ref().String()).Field("state", i.State)
	if i.RawState != string(i.State) {
		known(s, "raw state", i.RawState)
	}
	s.FieldTone("stuck", ops.WithDetail(string(i.Verdict.Stuck), i.Verdict.Say()), stuckTone(i.Verdict.Stuck))
	known(s, "verdict", i.Verdict.Reason)
	known(s, "name", i.Name)
	known(s, "provider", ops.WithDetail(i.Provider, i.ProviderType))
	s.Field("age", i.ageText())
	moment(s, "created", i.CreatedAt)
	moment(s, "started", i.StartedAt)
	moment(s, "last activity", i.LastActivityAt)
	if !i.State.Ended() {
		moment(s, "expires", i.ExpiresAt)
	}
	moment(s, "ended", i.EndedAt)
	if i.ended != nil {
		s.Field("ended by", i.ended.Sentence(i.now))
	}
	known(s, "template", i.Template)
	known(s, "agent type", i.AgentType)
	s.Field("task", i.TaskID)
	known(s, "owner", i.Owner)
	if len(i.Labels) > 0 {
		s.Field("labels", i.Labels)
	}
}

func (i inspection) ageText() string {
	age, source := i.Age(i.now)
	if source == sandbox.AgeUnknown {
		return "unknown"
	}
	return ops.WithDetail(sandbox.FormatDuration(age), "since "+string(source))
}

func (i inspection) pageLimits(s *output.Sheet) {
	l := i.Limits
	s.Section("Limits")
	amount(s, "memory", mebibytes(l.MemoryBytes), "MiB")
	if l.CPU != nil {
		s.Field("cpu", decimal(*l.CPU, 2)+" cores")
	}
	count(s, "processes", l.PIDs)
	amount(s, "disk", mebibytes(l.DiskBytes), "MiB")
	known(s, "isolation", l.Isolation)
	s.Field("enforcement", enforcementText(l.Enforcement))
}

func enforcementText(e sandbox.Enforcement) string {
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

func (i inspection) pageUsage(s *output.Sheet) {
	s.Section("Usage")
	if i.used == nil {
		s.Text(missing(i.seen.Usage.Err))
		return
	}
	u := *i.used
	if u.trend.CPUPercent != nil {
		s.FieldTone("cpu", decimal(*u.trend.CPUPercent, 1)+"% of one core", u.cpuTone())
	}
	if u.last.CPUSeconds != nil {
		s.Field("cpu time", time.Duration(*u.last.CPUSeconds*float64(time.Second)))
	}
	if u.trend.MemoryBytes != nil {
		s.FieldTone("memory", u.memoryText()+" MiB", u.memoryTone())
	}
	amount(s, "memory peak", mebibytes(u.last.MemoryPeakBytes), "MiB")
	switch {
	case u.trend.MemorySlope != nil:
		s.Field("memory trend", u.slopeText()+" MiB/min")
	case u.trend.TooShort && u.trend.Samples > 1:
		s.Field("memory trend", "too short to tell")
	}
	count(s, "operations", u.last.Operations)
	if u.last.Duration != nil {
		s.Field("has run for", *u.last.Duration)
	}
	count(s, "processes", u.last.PIDs)
	count(s, "oom kills", u.last.OOMKills)
	known(s, "waits on", u.last.Waiting)
	if !i.State.Ended() {
		s.FieldTone("pattern", u.verdict.Pattern, u.patternTone())
	}
	s.Field("source", u.trend.Source)
	if i.seen.Usage.Err != nil {
		s.Field("incomplete", missing(i.seen.Usage.Err))
	}
}

func (i inspection) pageHealth(s *output.Sheet) {
	s.Section("Health")
	if i.seen.Health.Err != nil {
		s.Text(missing(i.seen.Health.Err))
		return
	}
	s.FieldTone("answers", i.seen.Health.Got.Verdict, i.healthTone())
	if c := i.condition(); c != providers.ConditionUnknown {
		s.Field("condition", c)
	}
	for _, e := range i.seen.Health.Got.Evidence {
		s.Field(e.What, ops.WithDetail(e.Value, e.Source))
	}
}

func (i inspection) pageTimeline(s *output.Sheet) {
	s.Section("Timeline")
	switch {
	case i.seen.Events.Err != nil:
		s.Text(missing(i.seen.Events.Err))
	case len(i.seen.Events.Got) == 0:
		s.Text("no events")
	}
	rows := make([][]any, len(i.seen.Events.Got))
	for n, e := range i.seen.Events.Got {
		rows[n] = []any{e.At, e.Event, e.Detail}
	}
	s.Table([]string{"at", "event", "detail"}, rows)
}

func (i inspection) pageOutput(s *output.Sheet) {
	last := i.seen.Logs.Got[max(0, len(i.seen.Logs.Got)-pageLines):]
	s.Section("Last output")
	switch {
	case i.seen.Logs.Err != nil:
		s.Text(missing(i.seen.Logs.Err))
	case len(last) == 0:
		s.Text("it has written nothing")
	}
	m := triage.NewMatcher()
	rows := make([][]any, len(last))
	for n, l := range last {
		pattern, _ := m.Match(l.Text)
		rows[n] = []any{clock(l.At, i.now), l.Stream, l.Text, pattern.ID}
	}
	s.Table([]string{"at", "stream", "line", "pattern"}, rows)
}

func (i inspection) pageExit(s *output.Sheet) {
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
	known(s, "raw", e.Raw)
	known(s, "signal", e.Signal)
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
