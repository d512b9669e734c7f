package views

import (
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/triage"
)

// Inspection is one sandbox with all that is known and thought of it.
type Inspection struct {
	SandboxRow

	Seen    fleet.Observation
	Used    *UsageRow // nil where usage is not known
	Flags   []triage.Flag
	Program string         // what sbx is called, for the next command
	Ended   *ops.EndRecord // what the journals tell of its end; nil = nothing
}

// RecordPage shows people what is on record of a sandbox that is gone.
func (i Inspection) RecordPage(s *output.Sheet) {
	s.Section(i.Ref().String()).Field("state", ops.WithDetail(string(i.State), "on record; it is not there any more"))
	s.Field("ended by", i.Ended.Sentence(i.Now))
	known(s, "was", i.RawState)
	known(s, "name", i.Name)
	moment(s, "created", i.CreatedAt)
	known(s, "template", i.Template)
	known(s, "agent type", i.AgentType)
	known(s, "task", i.TaskID)
	if len(i.Labels) > 0 {
		s.Field("labels", i.Labels)
	}
	if len(i.Seen.Logs.Got) > 0 {
		i.pageOutput(s)
	}
}

// endedByObject is the key ended_by: null where nothing tells of an end.
func (i Inspection) endedByObject() any {
	if i.Ended == nil {
		return nil
	}
	r := i.Ended
	return output.Fields{
		{Key: "at", Value: output.Time(r.At)},
		{Key: "who", Value: r.Who},
		{Key: "host", Value: r.Host},
		{Key: "verb", Value: r.Verb},
		{Key: "run_id", Value: r.Run},
		{Key: "outcome", Value: r.Outcome},
		{Key: "reason", Value: r.Reason},
	}
}
