package commands

import (
	"context"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// inspectRecord shows what is on record of a sandbox that is not there; missing is the
// error of the look, whose kind stays that of the answer. Without a record it is all.
func (d *Deps) inspectRecord(ctx context.Context, p *output.Printer, word string, missing error) error {
	r, verdict := d.WhoEnded(ctx, word, missing)
	if r == nil {
		return missing
	}
	return output.ShowItemAs(p, output.ItemSpec[inspection]{
		Schema: inspectSchema, Columns: inspectColumns(), Human: func(s *output.Sheet, i inspection) { i.recordPage(s) },
	}, d.onRecord(*r), verdict, verdict)
}

// errOnRecord stands for what nobody can ask a sandbox that is gone.
var errOnRecord = fault.New(fault.KindNotFound, "it is gone")

// onRecord makes the object of inspect of what is on record: what is not there is
// unknown.
func (d *Deps) onRecord(r ops.EndRecord) inspection {
	s := r.Sandbox
	s.RawState, s.State = string(s.State), sandbox.StateUnknown
	if ops.EndedOutcome(r.Outcome) {
		s.State, s.EndedAt = sandbox.StateTerminated, r.At
	}
	seen := fleet.Observation{Sandbox: s}
	seen.Usage.Err, seen.Health.Err, seen.Events.Err = errOnRecord, errOnRecord, errOnRecord
	for _, text := range r.Logs {
		seen.Logs.Got = append(seen.Logs.Got, sandbox.LogLine{Text: text})
	}
	return inspection{sandboxRow: d.row(s), seen: seen, program: d.Process.Name(), ended: &r}
}

func (i inspection) recordPage(s *output.Sheet) {
	s.Section(i.Ref().String()).Field("state", ops.WithDetail(string(i.State), "on record; it is not there any more"))
	s.Field("ended by", i.ended.Sentence(i.now))
	known(s, "was", i.RawState)
	known(s, "name", i.Name)
	moment(s, "created", i.CreatedAt)
	known(s, "template", i.Template)
	known(s, "agent type", i.AgentType)
	known(s, "task", i.TaskID)
	if len(i.Labels) > 0 {
		s.Field("labels", i.Labels)
	}
	if len(i.seen.Logs.Got) > 0 {
		i.pageOutput(s)
	}
}

// endedByObject is the key ended_by: null where nothing tells of an end.
func (i inspection) endedByObject() any {
	if i.ended == nil {
		return nil
	}
	r := i.ended
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
