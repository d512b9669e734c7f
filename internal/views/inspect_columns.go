package views

import (
	"cmp"

	"sbx/internal/output"
	"sbx/internal/providers"
)

// InspectColumns are S of CLI.md and the parts that only one sandbox has.
func InspectColumns() []output.Column[Inspection] {
	var columns []output.Column[Inspection]
	for _, c := range SandboxColumns() {
		columns = append(columns, output.Column[Inspection]{
			Name: c.Name, Head: c.Head, Level: c.Level, Value: func(i Inspection) any { return c.Value(i.SandboxRow) },
		})
	}
	extra := func(name string, value func(Inspection) any) {
		columns = append(columns, output.Column[Inspection]{Name: name, Level: output.Extra, Value: value})
	}
	extra("limits", Inspection.limitsObject)
	extra("usage", Inspection.usageObject)
	extra("health", Inspection.healthObject)
	extra("timeline", Inspection.TimelineList)
	extra("exit", Inspection.exitObject)
	extra("suspicions", Inspection.suspicionList)
	extra("ended_by", Inspection.endedByObject)
	return columns
}

func (i Inspection) limitsObject() any {
	l := i.Limits
	return output.Fields{
		{Key: "memory_mb", Value: output.MiB(l.MemoryBytes)},
		{Key: "cpu", Value: l.CPU},
		{Key: "pids", Value: l.PIDs},
		{Key: "enforcement", Value: l.Enforcement},
		{Key: "isolation", Value: l.Isolation},
	}
}

func (i Inspection) usageObject() any {
	if i.Used == nil {
		return nil
	}
	return Object(UsageColumns(), *i.Used)
}

func (i Inspection) healthObject() any {
	if i.Seen.Health.Err != nil {
		return nil
	}
	return output.Fields{{Key: "verdict", Value: i.Seen.Health.Got.Verdict}, {Key: "condition", Value: i.conditionOf()}, {Key: "evidence", Value: EvidenceList(i.Seen.Health.Got.Evidence)}}
}

// conditionOf is what may be done next, "unknown" where the probe does not say.
func (i Inspection) conditionOf() providers.Condition {
	return cmp.Or(i.Seen.Health.Got.Condition, providers.ConditionUnknown)
}

// TimelineList is the timeline as data.
func (i Inspection) TimelineList() any {
	if i.Seen.Events.Err != nil && len(i.Seen.Events.Got) == 0 {
		return nil
	}
	list := make([]any, len(i.Seen.Events.Got))
	for n, e := range i.Seen.Events.Got {
		list[n] = output.Fields{{Key: "at", Value: output.Time(e.At)}, {Key: "event", Value: e.Event}, {Key: "detail", Value: e.Detail}}
	}
	return list
}

func (i Inspection) exitObject() any {
	e := i.Exit
	if e == nil {
		return nil
	}
	return output.Fields{
		{Key: "code", Value: e.Code},
		{Key: "raw_exit", Value: e.Raw},
		{Key: "signal", Value: e.Signal},
		{Key: "class", Value: e.Class},
		{Key: "cause", Value: e.Cause},
		{Key: "confidence", Value: e.Confidence},
		{Key: "evidence", Value: EvidenceList(e.Evidence)},
	}
}

func (i Inspection) suspicionList() any {
	list := make([]any, len(i.Verdict.Findings))
	for n, f := range i.Verdict.Findings {
		list[n] = output.Fields{
			{Key: "cause", Value: f.Cause},
			{Key: "title", Value: f.Title},
			{Key: "confidence", Value: f.Confidence},
			{Key: "evidence", Value: EvidenceList(f.Evidence)},
		}
	}
	return list
}
