package views

import (
	"errors"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Inspection is one sandbox with all that is known and thought of it.
type Inspection struct {
	SandboxRow

	Seen    fleet.Observation
	Used    *UsageRow           // nil where usage is not known
	Logs    *triage.LogFindings // nil where no output was read
	Flags   []triage.Flag
	Causes  []triage.Finding
	Steps   []look.DiagnoseStep
	Task    *ops.TaskState // that was asked for; nil = the sandbox was
	Program string         // what sbx is called, for the next command
	Command string         // of the sandbox, quoted for a shell; "" = not known
	Ended   *ops.EndRecord // what the journals record of its end; nil = nothing
	Last    *history.Seen  // what an earlier look saw of one that is gone; nil = nothing
	Missing error          // why it cannot be asked: then this is what is on record
}

// InspectionOf is what was found of one sandbox, as it is shown; nil where the investigation is of none.
// Program is what sbx is called.
func InspectionOf(p *output.Printer, d *look.DiagnoseResult, program string) *Inspection {
	r := d.Inspected
	if r == nil {
		return nil
	}
	return &Inspection{
		SandboxRow: SandboxRow{Sandbox: r.Seen.Sandbox, Verdict: r.Verdict, Now: r.At},
		Seen:       r.Seen, Used: (*UsageRow)(r.Used), Logs: r.Signals.Logs, Flags: r.Flags, Causes: r.Causes, Steps: d.Steps, Task: d.Task,
		Program: program, Command: p.Redact(ShellLine(r.Seen.Sandbox.Command)), Ended: r.End, Last: r.Last, Missing: r.Missing,
	}
}

// ShowInspection shows one sandbox in full; of one that is gone what is on record, as an
// error.
func ShowInspection(p *output.Printer, schema string, r *look.DiagnoseResult, program string) error {
	spec := output.ItemSpec[Inspection]{Schema: schema, Columns: InspectColumns(), Human: func(s *output.Sheet, i Inspection) { i.page(s, p.Verbose > 0) }}
	i := *InspectionOf(p, r, program)
	if i.Missing != nil {
		return output.ShowItemAs(p, spec, i, i.Missing, i.Missing)
	}
	return output.ShowItem(p, spec, i, r.Errors...)
}

// lastSeenText says when an earlier look saw the sandbox, and what it made of it.
func (i Inspection) lastSeenText() string {
	return string(i.Last.Sandbox.State) + " " + sandbox.FormatElapsed(max(0, i.Now.Sub(i.Last.At))) + " ago, by an earlier look of sbx"
}

// EvidenceList is the JSON form of what backs a claim.
func EvidenceList(list []sandbox.Evidence) []EvidenceItem {
	items := make([]EvidenceItem, len(list))
	for i, e := range list {
		items[i] = EvidenceItem{e.What, e.Value, e.Source, output.Time(e.At)}
	}
	return items
}

func addKnown(s *output.Sheet, name, value string) {
	if value != "" {
		s.Field(name, value)
	}
}

func addMoment(s *output.Sheet, name string, at time.Time) {
	if !at.IsZero() {
		s.Field(name, at.UTC())
	}
}

// ClockTime writes the time of a line as short as it stays clear: without the day
// within the last day, UTC.
func ClockTime(at, now time.Time) string {
	switch age := now.Sub(at); {
	case at.IsZero():
		return "-"
	case age >= 0 && age < 24*time.Hour:
		return at.UTC().Format(time.TimeOnly)
	}
	return at.UTC().Format(time.RFC3339)
}

func evidenceText(e sandbox.Evidence) string {
	return ops.WithDetail(strings.TrimSpace(e.What+" "+e.Value), e.Source)
}

// StuckTone is the tone of the verdict whether a sandbox is stuck.
func StuckTone(v sandbox.Verdict) output.Tone {
	return map[sandbox.Verdict]output.Tone{sandbox.True: output.Bad, sandbox.Unknown: output.Warn, sandbox.False: output.Plain}[v]
}

// HealthTone is bad only where an answer is due: what has ended gives none.
func (i Inspection) HealthTone() output.Tone {
	switch {
	case i.Seen.Health.Got.Verdict == sandbox.True:
		return output.Good
	case i.State != sandbox.StateRunning:
		return output.Plain
	case i.Seen.Health.Got.Verdict == sandbox.False:
		return output.Bad
	}
	return output.Warn
}

// UnknownReason says in one line why a part of an observation has no answer.
func UnknownReason(err error) string {
	text := err.Error()
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Err != nil {
		text = f.Err.Error()
	}
	if fault.KindOf(err) == fault.KindUnsupported {
		return "cannot be known: " + text
	}
	return "could not be read: " + text
}
