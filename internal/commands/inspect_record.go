package commands

import (
	"context"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// inspectRecord shows what is on record of a sandbox that is not there; missing is the
// error of the look, whose kind stays that of the answer. Without a record it is all.
func (d *Deps) inspectRecord(ctx context.Context, p *output.Printer, word string, missing error) error {
	r, verdict := d.WhoEnded(ctx, word, missing)
	if r == nil {
		return missing
	}
	return output.ShowItemAs(p, output.ItemSpec[views.Inspection]{
		Schema: inspectSchema, Columns: views.InspectColumns(), Human: func(s *output.Sheet, i views.Inspection) { i.RecordPage(s) },
	}, d.onRecord(*r), verdict, verdict)
}

// errOnRecord stands for what nobody can ask a sandbox that is gone.
var errOnRecord = fault.New(fault.KindNotFound, "it is gone")

// onRecord makes the object of inspect of what is on record: what is not there is
// unknown.
func (d *Deps) onRecord(r ops.EndRecord) views.Inspection {
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
	return views.Inspection{SandboxRow: d.row(s), Seen: seen, Program: d.Process.Name(), Ended: &r}
}
