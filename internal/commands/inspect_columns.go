package commands

import (
	"cmp"

	"sbx/internal/output"
	"sbx/internal/providers"
)

// inspectColumns are S of CLI.md and the parts that only one sandbox has.
func inspectColumns() []output.Column[inspection] {
	var columns []output.Column[inspection]
	for _, c := range sandboxColumns() {
		columns = append(columns, output.Column[inspection]{
			Name: c.Name, Head: c.Head, Level: c.Level, Value: func(i inspection) any { return c.Value(i.sandboxRow) },
		})
	}
	extra := func(name string, value func(inspection) any) {
		columns = append(columns, output.Column[inspection]{Name: name, Level: output.Extra, Value: value})
	}
	extra("limits", inspection.limitsObject)
	extra("usage", inspection.usageObject)
	extra("health", inspection.healthObject)
	extra("timeline", inspection.timelineList)
	extra("exit", inspection.exitObject)
	extra("suspicions", inspection.suspicionList)
	extra("ended_by", inspection.endedByObject)
	return columns
}

func (i inspection) limitsObject() any {
	l := i.Limits
	return output.Fields{
		{Key: "memory_mb", Value: output.MiB(l.MemoryBytes)},
		{Key: "cpu", Value: l.CPU},
		{Key: "pids", Value: l.PIDs},
		{Key: "enforcement", Value: l.Enforcement},
		{Key: "isolation", Value: l.Isolation},
	}
}

func (i inspection) usageObject() any {
	if i.used == nil {
		return nil
	}
	return fieldsOf(usageColumns(), *i.used)
}

func (i inspection) healthObject() any {
	if i.seen.Health.Err != nil {
		return nil
	}
	return output.Fields{{Key: "verdict", Value: i.seen.Health.Got.Verdict}, {Key: "condition", Value: i.condition()}, {Key: "evidence", Value: evidence(i.seen.Health.Got.Evidence)}}
}

// condition is what may be done next, "unknown" where the probe does not say.
func (i inspection) condition() providers.Condition {
	return cmp.Or(i.seen.Health.Got.Condition, providers.ConditionUnknown)
}

func (i inspection) timelineList() any {
	if i.seen.Events.Err != nil && len(i.seen.Events.Got) == 0 {
		return nil
	}
	list := make([]any, len(i.seen.Events.Got))
	for n, e := range i.seen.Events.Got {
		list[n] = output.Fields{{Key: "at", Value: output.Time(e.At)}, {Key: "event", Value: e.Event}, {Key: "detail", Value: e.Detail}}
	}
	return list
}

func (i inspection) exitObject() any {
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
		{Key: "evidence", Value: evidence(e.Evidence)},
	}
}

func (i inspection) suspicionList() any {
	list := make([]any, len(i.Verdict.Findings))
	for n, f := range i.Verdict.Findings {
		list[n] = output.Fields{
			{Key: "cause", Value: f.Cause},
			{Key: "title", Value: f.Title},
			{Key: "confidence", Value: f.Confidence},
			{Key: "evidence", Value: evidence(f.Evidence)},
		}
	}
	return list
}
